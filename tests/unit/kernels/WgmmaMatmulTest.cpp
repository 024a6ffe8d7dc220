// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products by warpgroups: the text, whose instructions are functions of
// the processor here (CudaShimWgmma.inc), against the body it stands for, in
// the corners of its space; and NVRTC on the same.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "ProductCases.h"

#include "kernels/abi/CubinElf.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

constexpr const char *gpu = "sm_90";

constexpr ProductCase wgmmaCases[] = {
    {"tiny", 1, 1, 8, 8, "bf16", "f32", 0, 0},
    {"ragged", 1, 70, 40, 24, "f16", "f32", 0, 0},
    {"batch", 3, 33, 72, 88, "bf16", "bf16", 0, 0},
    {"view", 1, 65, 136, 40, "f16", "f32", 8, 16},
    {"deep", 1, 20, 24, 584, "bf16", "f32", 0, 0},
    {"whole", 1, 200, 264, 192, "f16", "f16", 0, 0},
    {"fused", 1, 70, 40, 24, "bf16", "f32", 0, 0, true},
    {"fused_batch", 3, 33, 72, 88, "f16", "f16", 0, 0, true},
    {"turned", 1, 70, 136, 24, "bf16", "f32", 0, 0, false, true},
    {"turned_batch", 3, 33, 72, 88, "f16", "f16", 0, 0, true, true},
};

class WgmmaMatmul : public testing::Test {
protected:
  /// Every case under its defaults and some corners of its space.
  void add(size_t corners) {
    for (const ProductCase &test : wgmmaCases) {
      auto [kernel, space] =
          wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
      std::string name = test.name;
      ASSERT_TRUE(space.check(space.defaults));
      twins.add({name + "_default", kernel, space, space.defaults});
      std::vector<KernelConfig> some = cornersOf(space, corners, gpu);
      for (size_t k = 0; k < some.size(); ++k)
        twins.add({fmt::format("{}_{}", name, k), kernel, space, some[k]});
    }
    ASSERT_GE(twins.configs.size(), 2 * std::size(wgmmaCases));
  }
  CudaTwins twins;
};

TEST_F(WgmmaMatmul, TilesGiveTheBitsOfTheBody) {
  add(sweep(2, 3));
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const ProductCase &test : wgmmaCases)
    checkBitsOfTheBody(test, twins);
}

/// Several tiles of a block, one after the other and the last one in part, in
/// every order of the blocks.
TEST_F(WgmmaMatmul, BlocksOfSeveralTilesGiveTheBitsOfTheBody) {
  const ProductCase &test = wgmmaCases[5]; // 200 rows: 4 tiles of 64
  auto [kernel, space] =
      wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test), 16});
  for (uint32_t tiles : {2u, 4u})
    for (uint32_t raster : {1u, 8u}) {
      KernelConfig config = space.defaults;
      config[P::BlockY] = 5;
      config[P::TileX] = 2;
      config.tunables[1] = 2;
      config.tunables[2] = tiles;
      config.tunables[3] = raster;
      auto legal = space.check(config);
      ASSERT_TRUE(legal) << legal.error().message;
      twins.add({fmt::format("{}_{}_{}", test.name, tiles, raster), kernel,
                 space, config});
    }
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  checkBitsOfTheBody(test, twins);
}

TEST_F(WgmmaMatmul, CompilesForHopperAlone) {
  add(1);
  MGPU_OPEN_NVRTC(compiler);
  std::vector<CompileJob> jobs;
  for (const char *arch : {"sm_90a", "sm_90", "sm_100a"})
    jobs.push_back({twins.source(), "matmul.cu", {"--fmad=false"}, arch});
  auto results = compiler->compileAll(jobs);
  ASSERT_TRUE(results[0]) << results[0].error().message;
  EXPECT_FALSE(hasWarning(results[0]->log)) << results[0]->log;
  // "Potential Performance Loss: wgmma.mma_async instructions are serialized"
  EXPECT_EQ(results[0]->log.find("serialized"), std::string::npos)
      << results[0]->log;
  Cubin cubin = readCubin(results[0]->cubin);
  for (const TwinConfig &config : twins.configs) {
    SCOPED_TRACE(config.entry + " " + kernels::toText(config.config));
    const EntryUsage *usage = results[0]->find(config.entry);
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->sharedBytes, 0u);
    const CubinEntry &entry = cubin.entries[config.entry];
    EXPECT_EQ(entry.registers, usage->registers);
    std::vector<uint32_t> bytes;
    for (const CubinParameter &parameter : entry.parameters)
      bytes.push_back(parameter.bytes);
    std::vector<uint32_t> given = config.kernel.image.parameterBytes;
    EXPECT_EQ(given[1], 128u);
    given.push_back(48);
    EXPECT_EQ(bytes, given);
    // Who asks for more sums of a thread, or blocks at a time, than there are
    // registers for pays with a spill of some sums; the defaults do not.
    uint32_t sums = config.config[P::TileX] * config.config[P::TileY];
    uint64_t registers =
        65536 / (config.config.block().volume() * config.config[P::MinBlocks]);
    bool isTight = sums > 64 || registers < sums + 64;
    EXPECT_LE(usage->spillStoreBytes + usage->spillLoadBytes,
              isTight ? 2 * sizeof(float) * sums : 0u);
    EXPECT_FALSE(isTight && config.config == config.space.defaults);
    EXPECT_LE(usage->registers * config.config.block().volume() *
                  config.config[P::MinBlocks],
              65536u);
  }
  for (size_t other : {1u, 2u}) {
    ASSERT_FALSE(results[other]);
    EXPECT_NE(results[other].error().message.find("wgmma is of sm_90a alone"),
              std::string::npos)
        << results[other].error().message;
  }
}

TEST(WgmmaMatmulCornersOfEach, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  CornerCheck check;
  for (const ProductCase &test : wgmmaCases) {
    auto [kernel, space] =
        wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
    check.add(kernel, space, 1, {"sm_90a"});
  }
  check.run(*compiler);
}

/// At legal points ptxas leaves sums in registers, and wgmma in flight. With
/// MGPU_CORNERS=all all points, of each product and of a large one, which takes
/// the largest tiles.
class WgmmaMatmulCorners : public testing::TestWithParam<ProductCase> {};

TEST_P(WgmmaMatmulCorners, NoPointSpillsOrWaits) {
  MGPU_OPEN_NVRTC(compiler);
  const ProductCase &test = GetParam();
  auto [kernel, space] =
      wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
  CornerCheck check;
  check.addPoints(kernel, space, 131, "sm_90a");
  check.run(*compiler);
}

INSTANTIATE_TEST_SUITE_P(Small, WgmmaMatmulCorners,
                         testing::ValuesIn(wgmmaCases));
INSTANTIATE_TEST_SUITE_P(Large, WgmmaMatmulCorners,
                         testing::Values(ProductCase{"large", 1, 4096, 4096, 64,
                                                     "bf16", "f32", 0, 0}));

TEST(WgmmaMatmulText, MapsSayWhereTheMatricesLie) {
  auto [kernel, space] = wgmmaText(
      textOf(wgmmaCases[3]), {"view", "", sourceBlock, gridOf(wgmmaCases[3])});
  TensorMap a{1, 32, ElementType::F16, {40, 65, 1}, {96, 65 * 96}, {64, 64, 1}},
      b{2, 0, ElementType::F16, {136, 40, 1}, {272, 40 * 272}, {64, 64, 1}};
  EXPECT_EQ(kernel.image.tensorMaps, (std::vector<TensorMap>{a, b}));
  std::tie(kernel, space) = wgmmaText(
      textOf(wgmmaCases[2]), {"batch", "", sourceBlock, gridOf(wgmmaCases[2])});
  a = {1, 0, ElementType::BF16, {88, 33, 3}, {176, 33 * 176}, {64, 64, 1}};
  EXPECT_EQ(kernel.image.tensorMaps[0], a);
  EXPECT_EQ(kernel.image.parameterBytes, (std::vector<uint32_t>{8, 128, 128}));
}

TEST(WgmmaMatmulText, SaysWhatItIsNotFor) {
  EXPECT_EQ(wgmmaRefusal(textOf(wgmmaCases[3])), "");
  EXPECT_EQ(wgmmaRefusal(textOf(wgmmaCases[1], "2")),
            "a row of A or B is not contiguous");
  ProductCase test = wgmmaCases[1];
  test.k = 13;
  EXPECT_EQ(wgmmaRefusal(textOf(test)),
            "rows of A are 26 bytes apart, no multiple of the 16 that tensor "
            "copies take");
  test = wgmmaCases[1];
  test.n = 37;
  EXPECT_EQ(wgmmaRefusal(textOf(test)),
            "rows of B are 74 bytes apart, no multiple of the 16 that tensor "
            "copies take");
  test = wgmmaCases[3];
  test.offset = 5;
  EXPECT_EQ(wgmmaRefusal(textOf(test)),
            "A begins 10 bytes into its buffer, no multiple of the 16 that "
            "tensor copies take");
  test = wgmmaCases[3];
  test.pad = -16;
  EXPECT_EQ(wgmmaRefusal(textOf(test)), "rows of A overlap");
}

TEST(WgmmaMatmulText, AProductOfFewRowsHasItsChoices) {
  for (int64_t rows : {1, 8}) {
    const ProductCase test{"few_rows", 1,     rows, 8192, 2048,
                           "bf16",     "f32", 0,    0};
    auto space =
        wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)})
            .second;
    // The smallest tile has 64 rows: 3 widths, 2 depths, 4 numbers of stages,
    // 2 of blocks, 2 orders.
    EXPECT_EQ(space.legal().size(), 3u * 2 * 4 * 2 * 2) << rows;
  }
}

TEST(WgmmaMatmulText, StagesAndSumsAreWithinTheGpu) {
  auto [kernel, space] = wgmmaText(
      textOf(wgmmaCases[5]), {"whole", "", sourceBlock, gridOf(wgmmaCases[5])});
  EXPECT_EQ(space.sharedBytesOf(space.defaults),
            1024 + 2 * 4 * 64 * (128 + 128u));
  EXPECT_EQ(kernel.image.dynamicSharedBytes,
            space.sharedBytesOf(space.defaults));
  Dim3 covered = space.covered(space.defaults);
  EXPECT_EQ(covered.x, 128u);
  EXPECT_EQ(covered.y, 128u);
  KernelConfig config = space.defaults;
  config[P::TileX] = 8;
  config[P::TileY] = 32;
  auto refused = space.check(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the sums and 40 other registers of a thread are 296; it has no "
            "more than 255");
  config[P::TileX] = 4;
  config[P::BlockY] = 13;
  refused = space.check(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the sums and 40 other registers of each thread, of warps by "
            "fours, are 86016; at most 65536");
  const device::DeviceProfile *h100 = device::profileOfArchitecture(gpu);
  EXPECT_TRUE(onDevice(space, *h100).check(space.defaults));
  config = space.defaults;
  config[P::TileX] = 8;
  config.tunables[1] = 6;
  EXPECT_TRUE(space.check(config)) << space.check(config).error().message;
  refused = onDevice(space, *h100).check(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "295936 bytes of shared memory of a block; H100 has 232448");
}

} // namespace
} // namespace mgpu::kernels
