// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f32 load their tiles by 16 bytes, and the next ones meanwhile.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"

namespace mgpu::kernels {
namespace {

TEST(ProductCode, TilesAreLoadedWideAndAhead) {
  MGPU_OPEN_NVRTC(compiler);
  const std::string type = "memref<4096x4096xf32>";
  auto codes = machineCodeOf(
      programOn({"4096x4096xf32", "4096x4096xf32", "4096x4096xf32"},
                "  linalg.matmul ins(%b0, %b1 : " + type + ", " + type +
                    ") outs(%b2 : " + type + ")\n"),
      "tile_x=8 tile_y=8");
  ASSERT_TRUE(codes) << codes.error().message;
  const MachineCode &code = codes->front();
  constexpr size_t steps = 16, sums = 8 * 8;
  // A sum each, and the 4 loads of 16 bytes that a step of 8 x 8 needs.
  EXPECT_EQ(code.count("FADD"), steps * sums) << code.text();
  EXPECT_EQ(code.count("FMUL"), steps * sums) << code.text();
  EXPECT_EQ(code.count("LDS.128"), steps * 4) << code.text();
  EXPECT_EQ(code.count("LDS"), steps * 4) << code.text();
  // The next tiles, 8 elements of each, are asked for before the loop's first
  // product, and come to shared memory after its last.
  EXPECT_EQ(code.before("FMUL").count("LDG"), sums + 2 * 8) << code.text();
  EXPECT_EQ(code.before("FMUL").count("STS"), 0u) << code.text();
  EXPECT_EQ(code.count("STS"), 2u * 8) << code.text();
  EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
  EXPECT_LE(code.registers, 176u) << code.text();
}

} // namespace
} // namespace mgpu::kernels
