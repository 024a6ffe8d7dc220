// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise kernels have the accesses that they need and no others.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"

namespace mgpu::kernels {
namespace {

/// (a * b + c) max a, less b.
std::string chain(const std::string &element, const std::string &shape) {
  const std::string type = shape + "x" + element;
  std::string body =
      "  linalg.generic {indexing_maps = [#all, #all, #all, #all], "
      "iterator_types = [\"parallel\", \"parallel\"]}\n"
      "      ins(%b0, %b1, %b2 : memref<T>, memref<T>, memref<T>) outs(%b3 : "
      "memref<T>) {\n"
      "  ^bb0(%a: E, %b: E, %c: E, %out: E):\n"
      "    %product = arith.mulf %a, %b : E\n"
      "    %sum = arith.addf %product, %c : E\n"
      "    %most = arith.maximumf %sum, %a : E\n"
      "    %rest = arith.subf %most, %b : E\n"
      "    linalg.yield %rest : E\n"
      "  }\n";
  for (auto [word, by] :
       {std::pair<std::string, std::string>{"<T>", "<" + type + ">"},
        {": E", ": " + element}})
    for (size_t at = 0; (at = body.find(word, at)) != std::string::npos;
         at += by.size())
      body.replace(at, word.size(), by);
  return programOn({type, type, type, type}, body);
}

TEST(ElementwiseCode, HasOneWideAccessForEachBuffer) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(chain("f32", "16384x4096"), "");
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 1u);
  const MachineCode &code = codes->front();
  EXPECT_EQ(code.count("LDG.128"), 3u) << code.text();
  EXPECT_EQ(code.count("LDG"), 3u) << code.text();
  EXPECT_EQ(code.count("STG.128"), 1u) << code.text();
  EXPECT_EQ(code.count("STG"), 1u) << code.text();
  EXPECT_EQ(code.count("CALL") + code.count("MUFU"), 0u) << code.text();
  EXPECT_EQ(code.count("FMNMX"), 4u) << code.text();
  EXPECT_LE(code.instructions.size(), 56u) << code.text();
  EXPECT_LE(code.registers, 32u);
}

/// Compiled with others it has the form that its launch is for, too.
TEST(ElementwiseCode, WhatNobodyTunedHasTheDefaultForm) {
  MGPU_OPEN_NVRTC(compiler);
  const std::string program = chain("bf16", "16384x4096");
  auto alone = machineCodeOf(program, ""), together = codeOfAll(program);
  ASSERT_TRUE(alone) << alone.error().message;
  ASSERT_TRUE(together) << together.error().message;
  EXPECT_EQ(together->front().count("LDG.128"), 3u);
  EXPECT_EQ(together->front().text(), alone->front().text());
}

/// A block goes on to its next place, here as far as whole rows: few blocks, of
/// one loop.
TEST(ElementwiseCode, BlocksThatStayAreALoopOfWideAccesses) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(chain("f32", "16384x4096"),
                             "items=32 vector=4 block_x=32 block_y=8");
  ASSERT_TRUE(codes) << codes.error().message;
  const MachineCode &code = codes->front();
  EXPECT_EQ(code.count("LDG"), 3 * code.count("STG")) << code.text();
  EXPECT_EQ(code.count("LDG"), code.count("LDG.128")) << code.text();
  EXPECT_EQ(code.count("STG"), code.count("STG.128")) << code.text();
  EXPECT_LT(code.count("STG"), 32u) << "it is a loop: " << code.text();
  EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
}

TEST(ElementwiseCode, RoundsBf16ByOneInstruction) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(chain("bf16", "16384x4096"), "");
  ASSERT_TRUE(codes) << codes.error().message;
  const MachineCode &code = codes->front();
  EXPECT_EQ(code.count("LDG.128"), 3u) << code.text();
  EXPECT_EQ(code.count("LDG"), 3u) << code.text();
  EXPECT_EQ(code.count("STG.128"), 1u) << code.text();
  EXPECT_EQ(code.count("STG"), 1u) << code.text();
  EXPECT_EQ(code.count("CALL") + code.count("MUFU"), 0u) << code.text();
  EXPECT_GT(code.count("F2FP"), 0u) << code.text();
  EXPECT_LE(code.instructions.size(), 24u * 8) << code.text();
}

/// A launch that begins beside the kernel it follows reads nothing before that
/// has ended, and takes nothing for a constant: the other may still write it.
/// Alone, the same kernel takes all that it reads for constants.
TEST(ElementwiseCode, NothingThatMayStillBeWrittenIsAConstant) {
  MGPU_OPEN_NVRTC(compiler);
  for (const char *element : {"f32", "bf16"})
    for (const char *config : {"", "vector=1", "items=8"}) {
      const std::string program = chain(element, "16384x4096");
      auto alone = machineCodeOf(program, config);
      auto early = machineCodeOf(program, config, /*awaits=*/true);
      ASSERT_TRUE(alone && early) << element << " " << config;
      const MachineCode &code = early->front();
      EXPECT_EQ(code.constants(), 0u) << code.text();
      EXPECT_EQ(code.before("ACQBULK").count("LDG"), 0u) << code.text();
      EXPECT_EQ(alone->front().constants(), alone->front().count("LDG"))
          << alone->front().text();
    }
}

/// Through shared memory: a thread loads one element of each of 4 rows, whose
/// neighbours the warp's other lanes load, and stores 4 that follow each other.
TEST(ElementwiseCode, ATranspositionLoadsAndStoresWholeLines) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(
      programOn({"8192x8192xf32", "8192x8192xf32"},
                "  linalg.transpose ins(%b0 : memref<8192x8192xf32>) outs(%b1 "
                ": memref<8192x8192xf32>) permutation = [1, 0]\n"),
      "vector=4 block_x=8 block_y=32 tunables=1");
  ASSERT_TRUE(codes) << codes.error().message;
  const MachineCode &code = codes->front();
  EXPECT_EQ(code.count("LDG.32"), 4u) << code.text();
  EXPECT_EQ(code.count("LDG"), 4u) << code.text();
  EXPECT_EQ(code.count("STG.128"), 1u) << code.text();
  EXPECT_EQ(code.count("STG"), 1u) << code.text();
  EXPECT_EQ(code.count("STS.32"), 4u) << code.text();
  EXPECT_EQ(code.count("LDS.32"), 4u) << code.text();
  EXPECT_EQ(code.count("BAR"), 1u) << code.text();
}

} // namespace
} // namespace mgpu::kernels
