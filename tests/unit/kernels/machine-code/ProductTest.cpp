// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f32 load their tiles by 16 bytes, and the next ones meanwhile;
// warpgroups load and store two sums at once.
#include "MachineCode.h"

#include "planner/dag/LaunchFacts.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/import/ImportText.h"
#include "tests/unit/kernels/CudaTwin.h"

#include <algorithm>
#include <fmt/format.h>

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
  // One operation for each sum and step, and the 4 loads of 16 bytes that a
  // step of 8 x 8 needs.
  EXPECT_EQ(code.count("FFMA"), steps * sums) << code.text();
  EXPECT_EQ(code.count("FADD"), 0u) << code.text();
  EXPECT_EQ(code.count("FMUL"), 0u) << code.text();
  EXPECT_EQ(code.count("LDS.128"), steps * 4) << code.text();
  EXPECT_EQ(code.count("LDS"), steps * 4) << code.text();
  // The next tiles, 8 elements of each, are asked for before the loop's first
  // product, and come to shared memory after its last.
  EXPECT_EQ(code.before("FFMA").count("LDG"), sums + 2 * 8) << code.text();
  EXPECT_EQ(code.before("FFMA").count("STS"), 0u) << code.text();
  EXPECT_EQ(code.count("STS"), 2u * 8) << code.text();
  EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
  EXPECT_LE(code.registers, 176u) << code.text();
}

TEST(ProductCode, WarpgroupsStoreTwoSumsAtOnce) {
  MGPU_OPEN_NVRTC(compiler);
  for (auto [sum, width] : {std::pair("f32", 64), {"bf16", 32}}) {
    const std::string from = "memref<4096x4096xbf16>",
                      to = fmt::format("memref<4096x4096x{}>", sum);
    planner::Imported imported = planner::importText(programOn(
        {"4096x4096xbf16", "4096x4096xbf16", fmt::format("4096x4096x{}", sum)},
        "  linalg.matmul ins(%b0, %b1 : " + from + ", " + from +
            ") outs(%b2 : " + to + ")\n"));
    ASSERT_TRUE(imported.program) << imported.text();
    const planner::KernelSpec &spec = imported.dag().kernels.front();
    auto text = spec.hostText();
    ASSERT_TRUE(text);
    const planner::LaunchFacts facts =
        planner::launchFacts(imported.dag()).front();
    auto [kernel, space] = wgmmaText(
        **text, {"k", "", spec.block, facts.maxGrid, facts.alignment});
    // C's address is asked for what the accesses need, when a node is made.
    EXPECT_EQ(std::ranges::count(kernel.image.argumentAlignment, 16u), 1);
    auto compiled = compiler->compile(
        {kernel.image.blob, "k.cu", {"--fmad=false"}, "sm_90a"});
    ASSERT_TRUE(compiled) << compiled.error().message;
    auto code = readMachineCode(compiled->cubin, kernel.image.entry);
    ASSERT_TRUE(code) << code.error().message;
    // 64 sums of a thread, in pairs; where N ends in between, one of each.
    const std::string wide = fmt::format(".{}", width);
    EXPECT_EQ(code->count("STG" + wide), 32u) << code->text();
    EXPECT_EQ(code->count("LDG" + wide), 32u) << code->text();
    EXPECT_LE(code->registers, 168u) << code->text();
  }
}

} // namespace
} // namespace mgpu::kernels
