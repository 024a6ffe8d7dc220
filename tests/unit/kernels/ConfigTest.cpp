// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A kernel under every legal configuration gives the bits of the default one.
#include "KernelRunner.h"

#include "kernels/emit/KernelBuild.h"

#include <gtest/gtest.h>
#include <random>

namespace mgpu::kernels {
namespace {

using planner::KernelConfig;
using planner::KernelSpace;
using planner::KernelTarget;
using P = planner::KernelParameter;

KernelSpace spaceOf(const std::string &text, Dim3 block, Dim3 grid,
                    KernelTarget target = KernelTarget::Host) {
  auto space = kernelSpaceOf(specOf(text, block), grid, target);
  EXPECT_TRUE(space) << space.error().message;
  return space ? *space : KernelSpace();
}

/// Runs `text` as its default and `count` random legal configurations.
template <typename T>
void expectSame(const std::string &text, Dim3 block, Dim3 grid,
                const std::vector<std::vector<T>> &buffers, size_t count) {
  KernelSpace space = spaceOf(text, block, grid);
  auto legal = space.legal();
  ASSERT_FALSE(legal.empty());
  auto run = [&](std::optional<KernelConfig> config) {
    auto kernel = load(text, block, "native", config);
    auto mine = buffers;
    if (!kernel)
      return mine;
    std::vector<uint64_t> arguments;
    for (auto &buffer : mine)
      arguments.push_back(arg(buffer));
    kernel->run(grid, arguments);
    return mine;
  };
  auto expected = run(std::nullopt);
  EXPECT_NE(expected, buffers) << "the kernel does nothing";
  std::mt19937_64 random(7);
  for (size_t k = 0; k < count; ++k) {
    const KernelConfig &config = legal[random() % legal.size()];
    auto found = run(config);
    for (size_t j = 0; j < buffers.size(); ++j)
      EXPECT_TRUE(sameBits(found[j], expected[j]))
          << planner::toText(config) << ": buffer " << j << " of\n"
          << text;
  }
}

std::vector<float> randomFloats(size_t count) {
  std::mt19937 random(count);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(random);
  return values;
}

const char *const axpy = R"(
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %t = gpu.thread_id x
    %base = arith.muli %b, %d : index
    %i = arith.addi %base, %t : index
    %n = arith.constant 1000 : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = memref.load %x[%i] : memref<1000xf32>
      %w = memref.load %y[%i] : memref<1000xf32>
      %p = arith.mulf %v, %v : f32
      %s = arith.addf %p, %w : f32
      memref.store %s, %y[%i] : memref<1000xf32>
    })";

TEST(Config, ElementwiseOfAnyShape) {
  expectSame<float>(module("%x: memref<1000xf32>, %y: memref<1000xf32>", axpy),
                    {64}, {16}, {randomFloats(1000), randomFloats(1000)}, 24);
}

// The ids of the source, each written where it was, whatever runs.
TEST(Config, IdsOfTheSource) {
  std::string text = module("%out: memref<6x10x4x12xi64>", R"(
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
    memref.store %v, %out[%by, %bx, %ty, %tx] : memref<6x10x4x12xi64>)");
  expectSame<int64_t>(text, {12, 4}, {10, 6}, {std::vector<int64_t>(2880, -1)},
                      24);
}

const char *const matmul = R"(
    %row = gpu.global_id y
    %column = gpu.global_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%row, %k] : memref<64x64xf32>
      %w = memref.load %y[%k, %column] : memref<64x64xf32>
      %p = arith.mulf %v, %w : f32
      %next = arith.addf %s, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z[%row, %column] : memref<64x64xf32>)";

TEST(Config, LoopsThatHandOn) {
  expectSame<float>(
      module("%x: memref<64x64xf32>, %y: memref<64x64xf32>, "
             "%z: memref<64x64xf32>",
             matmul),
      {16, 16}, {4, 4},
      {randomFloats(4096), randomFloats(4097), std::vector<float>(4096)}, 40);
}

const char *const reduction = R"(
    %shared = memref.alloca() : memref<64xf32, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<512xf32>
    memref.store %v, %shared[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c63 = arith.constant 63 : index
    %other = arith.subi %c63, %t : index
    %w = memref.load %shared[%other] : memref<64xf32, #gpu.address_space<workgroup>>
    %s = arith.addf %v, %w : f32
    memref.store %s, %x[%i] : memref<512xf32>)";

TEST(Config, BarriersKeepTheBlock) {
  std::string text = module("%x: memref<512xf32>", reduction);
  KernelSpace space = spaceOf(text, {64}, {8});
  EXPECT_FALSE(space.reshapable);
  EXPECT_EQ(space.sharedBytes, 256u);
  for (const KernelConfig &config : space.legal())
    EXPECT_EQ(space.covered(config), space.block);
  KernelConfig other = space.defaults;
  other[P::BlockX] = 32;
  auto refused = space.check(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "32 x 1 items are not the 64 threads along x of the source's "
            "block, which the kernel keeps");
  other[P::Items] = 2;
  EXPECT_TRUE(space.check(other));
  expectSame<float>(text, {64}, {8}, {randomFloats(512)}, 16);
}

TEST(Config, AtomicSumsOfFloatsKeepTheirOrder) {
  std::string text = module("%x: memref<256xf32>, %sum: memref<1xf32>", R"(
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%i] : memref<256xf32>
    %old = memref.atomic_rmw addf %v, %sum[%c0] : (f32, memref<1xf32>) -> f32)");
  KernelSpace space = spaceOf(text, {64}, {4});
  EXPECT_FALSE(space.reshapable);
  EXPECT_NE(space.reason.find("keeps the order of its threads"),
            std::string::npos);
  EXPECT_EQ(space.choice(P::Items).values, std::vector<uint32_t>{1});
  expectSame<float>(text, {64}, {4}, {randomFloats(256), {0}}, 8);
}

TEST(Config, SpacesSayWhatTheyRefuse) {
  std::string text = module("%x: memref<1000xf32>, %y: memref<1000xf32>", axpy);
  KernelSpace host = spaceOf(text, {64}, {16});
  EXPECT_TRUE(host.reshapable);
  EXPECT_TRUE(host.check(host.defaults));
  EXPECT_EQ(host.choice(P::TileX).reason,
            "no loop of the kernel hands values on");
  std::vector<planner::KernelRefusal> refused;
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
  auto read = planner::parseKernelConfig(planner::toText(config));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, config);
  auto part = planner::parseKernelConfig("  items=4 ", config);
  ASSERT_TRUE(part);
  EXPECT_EQ((*part)[P::Items], 4u);
  EXPECT_EQ((*part)[P::BlockX], 256u);
  for (const char *bad : {"items", "items=", "items=x", "items=4x", "=4",
                          "colour=4", "items=4294967296", "items=-1"})
    EXPECT_FALSE(planner::parseKernelConfig(bad)) << bad;
}

} // namespace
} // namespace mgpu::kernels
