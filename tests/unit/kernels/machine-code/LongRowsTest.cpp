// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of few and long rows have blocks for a whole GPU, and wide loads.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"

namespace mgpu::kernels {
namespace {

std::string sumOf(const std::string &from, const std::string &to) {
  return programOn({from, to}, "  linalg.reduce ins(%b0 : memref<" + from +
                                   ">) outs(%b1 : memref<" + to +
                                   ">) dimensions = [0]\n"
                                   "    (%in: f32, %sum: f32) {\n"
                                   "      %next = arith.addf %sum, %in : f32\n"
                                   "      linalg.yield %next : f32\n"
                                   "    }\n");
}

TEST(LongRowsCode, AWholeSumOccupiesTheGpu) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(sumOf("67108864xf32", "f32"),
                             "vector=4 block_x=64 unroll=8");
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 2u);
  const MachineCode &chunks = codes->front();
  EXPECT_GE(chunks.blocks, 264u); // two for each processor of an H200
  EXPECT_EQ(chunks.count("LDG"), chunks.count("LDG.128")) << chunks.text();
  EXPECT_GE(chunks.before("FADD").count("LDG.128"), 8u) << chunks.text();
  EXPECT_EQ(codes->back().blocks, 1u);
}

TEST(LongRowsCode, ColumnSumsOccupyTheGpu) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(sumOf("8192x64xf32", "64xf32"), "");
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 2u);
  const MachineCode &chunks = codes->front();
  EXPECT_GE(chunks.blocks, 64u);
  constexpr size_t elements = 16; // of a thread: 128 of a chunk / 8 parts
  EXPECT_EQ(chunks.count("LDG.32"), elements) << chunks.text();
  EXPECT_EQ(chunks.before("FADD").count("LDG.32"), elements) << chunks.text();
}

} // namespace
} // namespace mgpu::kernels
