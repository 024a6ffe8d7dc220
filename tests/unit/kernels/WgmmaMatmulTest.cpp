// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products by warpgroups: the PTX that clang and NVRTC make of the text,
// executed, against the body it stands for, in the corners of its space.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "ProductCases.h"
#include "PtxTwin.h"

#include "kernels/abi/CubinElf.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/NvrtcLibrary.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <cstring>
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
    ASSERT_GE(twins.configs().size(), 2 * std::size(wgmmaCases));
  }
  PtxTwins twins;
};

/// A run whose memory is that of the case.
Result<void> runProduct(PtxTwins &twins, const TwinConfig &config,
                        const ProductMemory &memory,
                        std::vector<std::byte> &c) {
  auto regionOf = [](const std::vector<std::byte> &bytes, const char *name) {
    ptx::Region region;
    region.at = const_cast<std::byte *>(bytes.data());
    region.bytes = bytes.size();
    region.isWritable = false;
    region.name = name;
    return region;
  };
  std::vector<ptx::Region> regions = {regionOf(memory.a, "A"),
                                      regionOf(memory.b, "B"), regionOf(c, "C"),
                                      regionOf(memory.bias, "the bias")};
  regions[2].isWritable = true;
  return twins.run(config.entry, gridOf(memory.test),
                   memory.arguments(c, uint64_t(uintptr_t(memory.a.data()))),
                   regions);
}

/// Copies done late and early, and in another order.
constexpr std::pair<uint64_t, bool> orders[] = {
    {0, false}, {0, true}, {5, false}};

void expectBitsOfTheBody(PtxTwins &twins) {
  for (const ProductCase &test : wgmmaCases) {
    const ProductMemory memory(test, /*isWhole=*/true);
    const std::vector<std::byte> expected = memory.expected();
    for (const TwinConfig &config : twins.configs()) {
      if (config.kernel.name != test.name)
        continue;
      SCOPED_TRACE(config.entry + " " + kernels::toText(config.config));
      for (auto [seed, isEarly] : orders) {
        twins.options.seed = seed;
        twins.options.isEarly = isEarly;
        auto got = memory.initial;
        auto ran = runProduct(twins, config, memory, got);
        ASSERT_TRUE(ran) << ran.error().message;
        ASSERT_TRUE(got == expected) << "seed " << seed;
      }
    }
  }
}

TEST_F(WgmmaMatmul, TilesGiveTheBitsOfTheBody) {
  add(sweep(2, 3));
  auto compiled = twins.compile(nullptr);
  ASSERT_TRUE(compiled) << compiled.error().message;
  expectBitsOfTheBody(twins);
}

TEST_F(WgmmaMatmul, NvrtcsPtxGivesThem) {
  auto nvrtc = NvrtcLibrary::open("");
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  add(sweep(2, 3));
  auto compiled = twins.compile(nvrtc->get());
  ASSERT_TRUE(compiled) << compiled.error().message;
  expectBitsOfTheBody(twins);
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
  auto compiled = twins.compile(nullptr);
  ASSERT_TRUE(compiled) << compiled.error().message;
  expectBitsOfTheBody(twins);
}

/// A fault in the text: `is` in the place of `was`.
struct Fault {
  const char *name, *was, *is;
  const char *found; ///< in the sentence; "": the bits are other ones
};
void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.name; }

constexpr Fault faults[] = {
    {"NoWaitForTheCopies", "awaitPhase(loaded + stage, at / MGPU_STAGES % 2);",
     "", "an asynchronous copy"},
    {"NoWaitForTheFreeStage",
     "awaitPhase(freed + stage, at / MGPU_STAGES % 2 ^ 1);", "", "PTX line"},
    {"NoWaitForTheProducts", "awaitProducts<0>();", "",
     "touched before wgmma.wait_group"},
    {"FreedWhileItIsRead", "awaitProducts<1>();", "", "asynchronous"},
    {"NoFence", "beginProducts();", "", "since the last wgmma.fence"},
    {"NothingPublished", "publishBarriers();", "", "fence.mbarrier_init"},
    {"TooFewBytesAnnounced", "arriveExpecting(loaded + stage, stageBytes);",
     "arriveExpecting(loaded + stage, stageBytes - 16);", "PTX line"},
    {"ASwizzleBit", "1ull << 62", "1ull << 63", ""},
    {"AStepOfK", "part * 32, 16, 1024", "part * 32 % 96, 16, 1024", ""},
    {"AWrongFragment", "lane / 4 + e / 2 % 2 * 8", "lane / 4 + e % 2 * 8", ""},
    {"ABoxOfAnotherPlace", "topRow + tile * tileRows + part * 64",
     "topRow + tile * tileRows + part * 32", ""}};

class WgmmaMatmulFaults : public testing::TestWithParam<Fault> {};

TEST_P(WgmmaMatmulFaults, AreFound) {
  const Fault &fault = GetParam();
  const ProductCase &test = wgmmaCases[5];
  auto [kernel, space] =
      wgmmaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
  std::string &text = kernel.image.blob;
  size_t changes = 0;
  for (size_t at = text.find(fault.was); at != text.npos;
       at = text.find(fault.was, at + std::strlen(fault.is)), ++changes)
    text.replace(at, std::strlen(fault.was), fault.is);
  ASSERT_GT(changes, 0u);
  PtxTwins twins;
  KernelConfig config = space.defaults;
  config.tunables[1] = 2; // two stages, which come round
  twins.add({"faulty", kernel, space, config});
  auto compiled = twins.compile(nullptr);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const ProductMemory memory(test, /*isWhole=*/true);
  const std::vector<std::byte> expected = memory.expected();
  for (auto [seed, isEarly] : orders) {
    twins.options.seed = seed;
    twins.options.isEarly = isEarly;
    auto got = memory.initial;
    auto ran = runProduct(twins, twins.configs()[0], memory, got);
    if (*fault.found) {
      ASSERT_FALSE(ran) << "seed " << seed << (isEarly ? ", early" : "");
      EXPECT_NE(ran.error().message.find(fault.found), std::string::npos)
          << ran.error().message;
    } else {
      EXPECT_TRUE(!ran || got != expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, WgmmaMatmulFaults, testing::ValuesIn(faults));

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
  for (const TwinConfig &config : twins.configs()) {
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
