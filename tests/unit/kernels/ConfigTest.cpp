// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A kernel under every legal configuration gives the bits of the default one.
#include "KernelCases.h"
#include "KernelRunner.h"
#include "RandomKernel.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/Sweep.h"

#include <gtest/gtest.h>
#include <random>

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

KernelSpace spaceOf(const std::string &text, Dim3 block, Dim3 grid,
                    KernelTarget target = KernelTarget::Host) {
  auto space = kernelSpaceOf(specOf(text, block), grid, target);
  EXPECT_TRUE(space) << space.error().message;
  return space ? *space : KernelSpace();
}

/// Random legal configurations.
class Configs {
public:
  Configs(const KernelSpace &space, uint64_t seed)
      : legal(space.legal()), engine(seed) {}
  const KernelConfig &next() { return legal[engine() % legal.size()]; }

private:
  std::vector<KernelConfig> legal;
  std::mt19937_64 engine;
};

void expectSame(const KernelCase &test, size_t count) {
  KernelSpace space = spaceOf(test.text, test.block, test.grid);
  auto run = [&](std::optional<KernelConfig> config, bool inParts) {
    auto buffers = test.fill(7);
    auto kernel = load(test.text, test.block, "native", config);
    if (!kernel)
      return buffers;
    std::vector<uint64_t> arguments;
    for (auto &buffer : buffers)
      arguments.push_back(arg(buffer));
    arguments.insert(arguments.end(), test.scalars.begin(), test.scalars.end());
    if (inParts)
      kernel->runParts(test.grid, arguments);
    else
      kernel->run(test.grid, arguments);
    return buffers;
  };
  auto expected = run(std::nullopt, false);
  EXPECT_NE(expected, test.fill(7)) << test.name << " does nothing";
  // Blocks that add floats to the same bytes do it in another order.
  bool hasParts = test.name != "atomics";
  auto parts = hasParts ? run(std::nullopt, true) : expected;
  for (size_t j = 0; j < parts.size(); ++j)
    EXPECT_TRUE(sameBits(parts[j], expected[j]))
        << test.name << " in parts, buffer " << j;
  Configs configs(space, count);
  for (size_t k = 0; k < count; ++k) {
    const KernelConfig &config = configs.next();
    auto found = run(config, hasParts && k % 2 == 1);
    for (size_t j = 0; j < found.size(); ++j)
      EXPECT_TRUE(sameBits(found[j], expected[j]))
          << test.name << ", buffer " << j << ": " << kernels::toText(config);
  }
}

TEST(Config, KernelsWithStructure) {
  for (const KernelCase &each : structuredCases())
    expectSame(each, sweep(3, 6));
}

TEST(Config, EveryOperation) {
  for (const KernelCase &each : operationCases())
    expectSame(each, 2);
}

// Each batch as its default and under other configurations.
TEST(Config, RandomKernels) {
  auto [first, count] = random::seedRange(1000, sweep(12, 60));
  random::inBatches(first, count, 10, [](const random::Batch &batch) {
    const auto &[seeds, kernels] = batch;
    std::string text = random::textOf(kernels);
    Dim3 block = kernels[0].block, grid{kernels[0].blocks};
    KernelSpace space = spaceOf(text, block, grid);
    EXPECT_EQ(space.reshapable, !kernels[0].exchanges()) << space.reason;
    Configs configs(space, seeds[0]);
    for (int k = 0; k < 2; ++k) {
      const KernelConfig &config = configs.next();
      auto loaded = load(text, block, "native", config);
      ASSERT_TRUE(loaded) << kernels::toText(config);
      for (size_t j = 0; j < kernels.size(); ++j) {
        random::Memory memory(kernels[j], seeds[j]);
        loaded->run(grid, memory.arguments(j));
        ASSERT_EQ(memory.output, kernels[j].interpret(memory.input))
            << "seed " << seeds[j] << ": " << kernels::toText(config);
      }
    }
  });
}

// The ids of the source, each written where it was, whatever runs.
TEST(Config, IdsOfTheSource) {
  expectSame({"ids",
              module("%out: memref<6x10x4x12xi64>", R"(
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %gx = gpu.grid_dim x
    %dx = gpu.block_dim x
    %wx = gpu.global_id x
    %a = arith.muli %gx, %dx : index
    %c = arith.addi %a, %wx : index
    %k1000 = arith.constant 1000 : index
    %l = arith.muli %c, %k1000 : index
    %m = arith.addi %l, %tx : index
    %v = arith.index_cast %m : index to i64
    memref.store %v, %out[%by, %bx, %ty, %tx] : memref<6x10x4x12xi64>)"),
              {12, 4},
              {10, 6},
              {{'l', 2880}},
              {}},
             sweep(6, 24));
}

TEST(Config, GlobalIndicesInNarrowIntegers) {
  std::string text = module("%x: memref<512xi32>", R"(
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %b32 = arith.index_cast %b : index to i32
    %t32 = arith.index_cast %t : index to i32
    %c64 = arith.constant 64 : i32
    %m = arith.muli %b32, %c64 : i32
    %i = arith.addi %t32, %m : i32
    %at = arith.index_cast %i : i32 to index
    memref.store %i, %x[%at] : memref<512xi32>)");
  EXPECT_EQ(spaceOf(text, {64}, {8}).reason,
            "depends on its ids only through the global index");
  expectSame({"narrow", text, {64}, {8}, {{'i', 512}}, {}}, 16);
}

TEST(Config, BarriersKeepTheBlock) {
  const KernelCase &reverse = kernelCase("reverse");
  KernelSpace space = spaceOf(reverse.text, reverse.block, reverse.grid);
  EXPECT_FALSE(space.reshapable);
  EXPECT_EQ(space.sharedBytesOf(space.defaults), 512u);
  for (const KernelConfig &config : space.legal())
    EXPECT_EQ(space.covered(config), space.block);
  KernelConfig other = space.defaults;
  other[P::BlockX] = 64;
  auto refused = space.check(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "block_x * items is 64, not the 128 threads along x of the "
            "source's block, which the kernel keeps");
  other[P::Items] = 2;
  EXPECT_TRUE(space.check(other));
}

TEST(Config, AtomicSumsOfFloatsKeepTheirOrder) {
  const KernelCase &atomics = kernelCase("atomics");
  KernelSpace space = spaceOf(atomics.text, atomics.block, atomics.grid);
  EXPECT_FALSE(space.reshapable);
  EXPECT_NE(space.reason.find("keeps the order of its threads"),
            std::string::npos);
  EXPECT_EQ(space.choice(P::Items).values, std::vector<uint32_t>{1});
  EXPECT_TRUE(
      spaceOf(atomics.text, atomics.block, atomics.grid, KernelTarget::Cuda)
          .reshapable);
}

TEST(Config, SpacesSayWhatTheyRefuse) {
  const std::string &text = kernelCase("saxpy").text;
  KernelSpace host = spaceOf(text, {64}, {16});
  EXPECT_TRUE(host.reshapable);
  EXPECT_TRUE(host.check(host.defaults));
  EXPECT_EQ(host.choice(P::TileX).reason,
            "no loop of the kernel hands values on");
  std::vector<KernelRefusal> refused;
  auto legal = host.legal(UINT64_MAX, &refused);
  uint64_t sum = legal.size();
  for (const auto &each : refused)
    sum += each.count;
  EXPECT_EQ(sum, host.productSize());
  for (const KernelConfig &config : legal)
    EXPECT_TRUE(host.check(config));
  EXPECT_EQ(host.legal(3).size(), 3u);
  KernelConfig wide = host.defaults;
  wide[P::BlockX] = 512;
  wide[P::Items] = 4;
  auto tooMuch = host.check(wide);
  ASSERT_FALSE(tooMuch);
  EXPECT_EQ(tooMuch.error().message,
            "a block covers 2048 threads along x of a launch of 1024: half of "
            "it or more has no work");
  EXPECT_EQ(host.launchGrid(wide, {16}), Dim3{1});

  KernelSpace cuda = spaceOf(text, {64}, {16}, KernelTarget::Cuda);
  KernelConfig narrow = cuda.defaults;
  narrow[P::BlockX] = 16;
  auto idle = cuda.check(narrow);
  ASSERT_FALSE(idle);
  EXPECT_EQ(idle.error().message, "16 threads of a block leave lanes of a warp "
                                  "of 32 without work");
}

TEST(Config, TextForm) {
  KernelConfig config;
  config[P::BlockX] = 256;
  config[P::TileY] = 4;
  auto read = parseKernelConfig(kernels::toText(config));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, config);
  KernelConfig tuned = config;
  tuned.numTunables = 2;
  tuned.tunables[0] = 16;
  EXPECT_EQ(kernels::toText(tuned), kernels::toText(config) + " tunables=16,0");
  EXPECT_EQ(parseKernelConfig(kernels::toText(tuned)).value(), tuned);
  auto part = parseKernelConfig("  items=4 ", config);
  ASSERT_TRUE(part);
  EXPECT_EQ((*part)[P::Items], 4u);
  EXPECT_EQ((*part)[P::BlockX], 256u);
  for (const char *bad : {"items", "items=", "items=x", "items=4x", "=4",
                          "colour=4", "items=4294967296", "items=-1"})
    EXPECT_FALSE(parseKernelConfig(bad)) << bad;
}

} // namespace
} // namespace mgpu::kernels
