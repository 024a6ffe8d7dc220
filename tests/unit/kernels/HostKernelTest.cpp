// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelCases.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace mgpu::kernels {
namespace {

TEST(HostKernel, SaxpyWithBoundCheckOnEveryLevel) {
  for (const char *cpu : {"native", "x86-64-v2", "x86-64-v3"}) {
    auto kernel = load(kernelCase("saxpy").text, {128}, cpu);
    ASSERT_TRUE(kernel);
    auto x = randomFloats(1000, 1), y = randomFloats(1000, 2), expected = y;
    volatile float product; // one rounding per operation, no contraction
    for (int i = 0; i < 991; ++i) {
      product = 1.7f * x[i];
      expected[i] = product + y[i];
    }
    kernel->run({8}, {arg(x), arg(y), arg(1.7f), arg(int64_t(991))});
    EXPECT_TRUE(sameBits(y, expected)) << cpu;
  }
}

TEST(HostKernel, RunsOnlyTheBlocksAskedFor) {
  auto kernel = load(kernelCase("saxpy").text, {100});
  ASSERT_TRUE(kernel);
  std::vector<float> x(1000, 1), y(1000, 0);
  kernel->run({10}, {arg(x), arg(y), arg(2.0f), arg(int64_t(1000))}, 3, 5);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(y[i], i >= 300 && i < 500 ? 2.0f : 0.0f) << i;
}

TEST(HostKernel, ThreeDimensionalBlocksAndGrids) {
  auto kernel = load(module("%o: memref<6x8x10xi32>", R"(
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %bx = gpu.block_id x
    %gy = gpu.grid_dim y
    %lane = gpu.lane_id
    %c100 = arith.constant 100 : index
    %c10 = arith.constant 10 : index
    %a = arith.muli %tz, %c100 : index
    %b = arith.muli %ty, %c10 : index
    %c = arith.addi %a, %b : index
    %d = arith.addi %c, %tx : index
    %e = arith.muli %d, %c10 : index
    %f = arith.addi %e, %bx : index
    %g = arith.muli %f, %c10 : index
    %h = arith.addi %g, %gy : index
    %i = arith.muli %h, %c100 : index
    %j = arith.addi %i, %lane : index
    %v = arith.index_cast %j : index to i32
    memref.store %v, %o[%z, %y, %x] : memref<6x8x10xi32>)"),
                     {5, 4, 3});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> out(480), expected(480);
  kernel->run({2, 2, 2}, {arg(out)});
  for (int z = 0; z < 6; ++z)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 10; ++x) {
        int tx = x % 5, ty = y % 4, tz = z % 3;
        int lane = (tx + 5 * (ty + 4 * tz)) % 32;
        expected[(z * 8 + y) * 10 + x] =
            (((tz * 100 + ty * 10 + tx) * 10 + x / 5) * 10 + 2) * 100 + lane;
      }
  EXPECT_EQ(out, expected);
}

TEST(HostKernel, MatmulWithOneThreadPerElement) {
  constexpr int n = 48, m = 40, depth = 33;
  auto kernel = load(kernelCase("matmul").text, {8, 16});
  ASSERT_TRUE(kernel);
  auto a = randomFloats(n * depth, 3), b = randomFloats(depth * m, 4);
  std::vector<float> c(n * m + 3, -1), expected = c;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      volatile float sum = 0, product;
      for (int k = 0; k < depth; ++k) {
        product = a[i * depth + k] * b[k * m + j];
        sum = sum + product;
      }
      expected[3 + i * m + j] = sum;
    }
  kernel->run({5, 3}, {arg(a), arg(b), arg(c)});
  EXPECT_TRUE(sameBits(c, expected));
}

TEST(HostKernel, GuardedMatmulWhoseEdgesAreNotMultiples) {
  constexpr int rows = 37, cols = 29, depth = 11;
  auto kernel = load(module("%a: memref<37x11xf32>, %b: memref<11x29xf32>, "
                            "%c: memref<37x29xf32>, %n: index, %m: index",
                            R"(
    %col = gpu.global_id x
    %row = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = arith.constant 11 : index
    %zero = arith.constant 0.0 : f32
    %p = arith.cmpi slt, %row, %n : index
    %q = arith.cmpi ugt, %m, %col : index
    %in = arith.andi %p, %q : i1
    scf.if %in {
      %sum, %last = scf.for %i = %c0 to %k step %c1
          iter_args(%acc = %zero, %old = %zero) -> (f32, f32) {
        %x = memref.load %a[%row, %i] : memref<37x11xf32>
        %y = memref.load %b[%i, %col] : memref<11x29xf32>
        %r = arith.mulf %x, %y : f32
        %s = arith.addf %acc, %r : f32
        scf.yield %s, %acc : f32, f32
      }
      %d = arith.addf %sum, %last : f32
      memref.store %d, %c[%row, %col] : memref<37x29xf32>
    })"),
                     {8, 12});
  ASSERT_TRUE(kernel);
  auto a = randomFloats(rows * depth, 21), b = randomFloats(depth * cols, 22);
  std::vector<float> c(rows * cols, -1), expected(rows * cols);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) {
      volatile float sum = 0, last = 0, product;
      for (int k = 0; k < depth; ++k) {
        product = a[i * depth + k] * b[k * cols + j];
        last = sum;
        sum = sum + product;
      }
      expected[i * cols + j] = sum + last;
    }
  kernel->run({4, 4},
              {arg(a), arg(b), arg(c), arg(int64_t(rows)), arg(int64_t(cols))});
  EXPECT_TRUE(sameBits(c, expected));
}

TEST(HostKernel, UnsupportedOperationsAreNamed) {
  auto kernel = LoadedKernel::fromText(
      module("%x: memref<4xf32>, %y: memref<4xf32>",
             "memref.copy %x, %y : memref<4xf32> to memref<4xf32>"),
      {32});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(kernel.error().message.find("memref.copy"), std::string::npos);
  auto huge = LoadedKernel::fromText(module("%i: index, %o: memref<1xf32>", R"(
    %m = memref.alloca() : memref<4194304xf32>
    %v = memref.load %m[%i] : memref<4194304xf32>
    memref.store %v, %o[%i] : memref<1xf32>)"),
                                     {256});
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("1 GiB"), std::string::npos);
  auto wraps = LoadedKernel::fromText(module("%i: index, %o: memref<1xi64>", R"(
    %m = memref.alloca() : memref<2305843009213693952xi64>
    %v = memref.load %m[%i] : memref<2305843009213693952xi64>
    memref.store %v, %o[%i] : memref<1xi64>)"),
                                      {256});
  ASSERT_FALSE(wraps);
  EXPECT_NE(wraps.error().message.find("1 GiB"), std::string::npos);
}

// 64 MiB for a block, of which a thread's stack has not room.
TEST(HostKernel, LargePrivateArraysAreKeptPastBarriers) {
  auto kernel = load(module("%o: memref<256xi32>", R"(
    %t = gpu.thread_id x
    %c255 = arith.constant 255 : index
    %m = memref.alloca() : memref<256x256xi32>
    %s = memref.alloca() : memref<256xi32, #gpu.address_space<workgroup>>
    %n = arith.index_cast %t : index to i32
    memref.store %n, %m[%t, %c255] : memref<256x256xi32>
    memref.store %n, %s[%t] : memref<256xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %k = arith.subi %c255, %t : index
    %v = memref.load %m[%t, %c255] : memref<256x256xi32>
    %w = memref.load %s[%k] : memref<256xi32, #gpu.address_space<workgroup>>
    %d = arith.subi %v, %w : i32
    memref.store %d, %o[%t] : memref<256xi32>)"),
                     {256});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> out(256), expected(256);
  for (int32_t t = 0; t < 256; ++t)
    expected[t] = 2 * t - 255;
  for (int launch = 0; launch < 3; ++launch) {
    std::ranges::fill(out, 0);
    kernel->run({1}, {arg(out)});
    EXPECT_EQ(out, expected);
  }
}

TEST(HostKernel, AllReduceInTheStatedOrder) {
  auto kernel = load(module("%x: memref<100xf32>, %o: memref<100x4xf32>", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%t] : memref<100xf32>
    %sum = gpu.all_reduce add %v uniform {} : (f32) -> (f32)
    %min = gpu.all_reduce minnumf %v uniform {} : (f32) -> (f32)
    %max = gpu.all_reduce maximumf %v uniform {} : (f32) -> (f32)
    %d = gpu.all_reduce %v uniform {
    ^bb0(%l: f32, %r: f32):
      %h = arith.subf %l, %r : f32
      gpu.yield %h : f32
    } : (f32) -> (f32)
    %s = arith.addf %sum, %v : f32
    memref.store %s, %o[%t, %c0] : memref<100x4xf32>
    memref.store %min, %o[%t, %c1] : memref<100x4xf32>
    memref.store %max, %o[%t, %c2] : memref<100x4xf32>
    memref.store %d, %o[%t, %c3] : memref<100x4xf32>)"),
                     {100});
  ASSERT_TRUE(kernel);
  auto x = randomFloats(100, 7);
  std::vector<float> out(400), expected(400);
  float low = x[0], high = x[0];
  for (int t = 1; t < 100; ++t) {
    low = std::fmin(low, x[t]);
    high = std::fmax(high, x[t]);
  }
  float sum = reducedInOrder(x, [](float a, float b) { return a + b; });
  float difference = reducedInOrder(x, [](float a, float b) { return a - b; });
  for (int t = 0; t < 100; ++t) {
    expected[4 * t] = sum + x[t];
    expected[4 * t + 1] = low;
    expected[4 * t + 2] = high;
    expected[4 * t + 3] = difference;
  }
  kernel->run({1}, {arg(x), arg(out)});
  EXPECT_TRUE(sameBits(out, expected));
}

uint16_t toBf16(float value) { // round to nearest even; no NaN here
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

template <typename T>
void testNarrow(const std::string &type, T (*to)(float), float (*from)(T),
                const char *cpu) {
  auto kernel =
      load(module("%x: memref<256x" + type + ">, %y: memref<256x" + type + ">",
                  R"(
    %i = gpu.global_id x
    %a = memref.load %x[%i] : memref<256x)" +
                      type + R"(>
    %b = memref.load %y[%i] : memref<256x)" +
                      type + R"(>
    %p = arith.mulf %a, %b : )" +
                      type + R"(
    %s = arith.addf %p, %a : )" +
                      type + R"(
    %q = arith.divf %s, %b : )" +
                      type + R"(
    memref.store %q, %y[%i] : memref<256x)" +
                      type + ">"),
           {64}, cpu);
  ASSERT_TRUE(kernel);
  auto a = randomFloats(256, 11), b = randomFloats(256, 12);
  std::vector<T> x, y, expected;
  for (int i = 0; i < 256; ++i) {
    x.push_back(to(a[i]));
    y.push_back(to(b[i]));
    volatile float product = from(x[i]) * from(y[i]);
    float sum = from(to(product)) + from(x[i]);
    expected.push_back(to(from(to(sum)) / from(y[i])));
  }
  kernel->run({4}, {arg(x), arg(y)});
  EXPECT_TRUE(sameBits(y, expected)) << type << " " << cpu;
}

TEST(HostKernel, Bf16RoundsAfterEachOperation) {
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "native"})
    testNarrow<uint16_t>("bf16", toBf16, fromBf16, cpu);
}

TEST(HostKernel, F16RoundsAfterEachOperation) {
  for (const char *cpu : {"x86-64-v3", "native"})
    testNarrow<_Float16>(
        "f16", [](float v) { return _Float16(v); },
        [](_Float16 v) { return float(v); }, cpu);
}

TEST(HostKernel, AtomicsAddUp) {
  auto kernel = load(module("%o: memref<4xi32>, %f: memref<1xf32>", R"(
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1 : i32
    %half = arith.constant 0.5 : f32
    %slot = arith.remui %i, %c4 : index
    %old = memref.atomic_rmw addi %one, %o[%slot] : (i32, memref<4xi32>) -> i32
    %r = memref.atomic_rmw addf %half, %f[%c0] : (f32, memref<1xf32>) -> f32)"),
                     {100});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> out(4);
  std::vector<float> sum(1);
  kernel->run({3}, {arg(out), arg(sum)});
  EXPECT_EQ(out, (std::vector<int32_t>{75, 75, 75, 75}));
  EXPECT_EQ(sum[0], 150.0f);
}

TEST(HostKernel, DynamicWorkgroupMemoryAndAffineAndVectors) {
  auto kernel = load(kernelCase("dynamic").text, {64});
  ASSERT_TRUE(kernel);
  auto x = randomFloats(128, 13);
  std::vector<float> out(64), expected(64);
  for (int t = 0; t < 64; ++t) {
    int r = 2 * (63 - t);
    expected[t] = (x[r] - x[2 * t]) + (x[r + 1] - x[2 * t + 1]);
  }
  kernel->run({1}, {arg(x), arg(out)});
  EXPECT_TRUE(sameBits(out, expected));
}

TEST(HostKernel, BadLaunchesAndLevelsAreRefused) {
  EXPECT_FALSE(LoadedKernel::fromText(module("", ""), {2048}));
  EXPECT_FALSE(LoadedKernel::fromText(module("", ""), {0}));
  auto level = LoadedKernel::fromText(module("", ""), {32}, "pentium");
  ASSERT_FALSE(level);
  EXPECT_EQ(level.error().kind, ErrorKind::Usage);
  EXPECT_FALSE(LoadedKernel::fromText(module("%x: memref<?xf32>", ""), {32}));
}

} // namespace
} // namespace mgpu::kernels
