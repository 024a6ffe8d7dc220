// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

namespace mgpu::kernels {
namespace {

std::vector<float> randomFloats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-8, 8);
  std::vector<float> result(count);
  for (float &value : result)
    value = values(engine);
  return result;
}

const char *const saxpyBody = R"(
  %i = gpu.global_id x
  %in = arith.cmpi slt, %i, %n : index
  scf.if %in {
    %xv = memref.load %x[%i] : memref<1000xf32>
    %yv = memref.load %y[%i] : memref<1000xf32>
    %p = arith.mulf %a, %xv : f32
    %s = arith.addf %p, %yv : f32
    memref.store %s, %y[%i] : memref<1000xf32>
  })";
const char *const saxpyArguments =
    "%x: memref<1000xf32>, %y: memref<1000xf32>, %a: f32, %n: index";

TEST(HostKernel, SaxpyWithBoundCheckOnEveryLevel) {
  for (const char *cpu : {"native", "x86-64-v2", "x86-64-v3"}) {
    auto kernel = load(module(saxpyArguments, saxpyBody), {128}, cpu);
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
  auto kernel = load(module(saxpyArguments, saxpyBody), {100});
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
  auto kernel =
      load(module("%a: memref<48x33xf32>, %b: memref<33x40xf32>, "
                  "%c: memref<48x40xf32, strided<[40, 1], offset: 3>>",
                  R"(
    %col = gpu.global_id x
    %row = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = arith.constant 33 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zero) -> f32 {
      %x = memref.load %a[%row, %i] : memref<48x33xf32>
      %y = memref.load %b[%i, %col] : memref<33x40xf32>
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      scf.yield %s : f32
    }
    memref.store %sum, %c[%row, %col]
      : memref<48x40xf32, strided<[40, 1], offset: 3>>)"),
           {8, 16});
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

TEST(HostKernel, ABranchTestedAtItsCornersMayWrapAround) {
  // start + 3 * t wraps in some blocks: the first and last thread may agree
  // where those between do not.
  for (std::string predicate : {"slt", "sge", "ult", "uge"}) {
    auto kernel =
        load(module("%o: memref<64xi32>, %start: i32, %limit: i32", R"(
    %t = gpu.thread_id x
    %three = arith.constant 3 : i32
    %i = arith.index_cast %t : index to i32
    %m = arith.muli %i, %three : i32
    %v = arith.addi %start, %m : i32
    %in = arith.cmpi )" + predicate + R"(, %v, %limit : i32
    %r = scf.if %in -> i32 {
      scf.yield %v : i32
    } else {
      %w = arith.constant -7 : i32
      memref.store %w, %o[%t] : memref<64xi32>
      %z = arith.constant 5 : i32
      scf.yield %z : i32
    }
    %old = memref.load %o[%t] : memref<64xi32>
    %s = arith.addi %old, %r : i32
    memref.store %s, %o[%t] : memref<64xi32>)"),
             {64});
    ASSERT_TRUE(kernel);
    for (int64_t start : {0ll, -90ll, 2147483600ll, -2147483648ll, 4000ll})
      for (int64_t limit : {0ll, -50ll, 100ll, 2147483647ll, -2147483600ll}) {
        std::vector<int32_t> out(64, 1), expected(64, 1);
        for (int t = 0; t < 64; ++t) {
          uint32_t v = uint32_t(start) + 3 * uint32_t(t), u = uint32_t(limit);
          bool in = predicate == "slt"   ? int32_t(v) < int32_t(u)
                    : predicate == "sge" ? int32_t(v) >= int32_t(u)
                    : predicate == "ult" ? v < u
                                         : v >= u;
          expected[t] = in ? int32_t(1 + v) : -2;
        }
        kernel->run({1}, {arg(out), arg(start), arg(limit)});
        EXPECT_EQ(out, expected) << predicate << start << " " << limit;
      }
  }
}

TEST(HostKernel, BarrierMakesWorkgroupMemoryVisible) {
  // The value loaded before the barrier lives on past it.
  auto kernel = load(module("%x: memref<512xf32>, %o: memref<512xf32>", R"(
    %tile = memref.alloca() : memref<128xf32, #gpu.address_space<workgroup>>
    %i = gpu.global_id x
    %t = gpu.thread_id x
    %c127 = arith.constant 127 : index
    %v = memref.load %x[%i] : memref<512xf32>
    memref.store %v, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %r = arith.subi %c127, %t : index
    %w = memref.load %tile[%r] : memref<128xf32, #gpu.address_space<workgroup>>
    %d = arith.subf %w, %v : f32
    memref.store %d, %o[%i] : memref<512xf32>)"),
                     {128});
  ASSERT_TRUE(kernel);
  auto x = randomFloats(512, 5);
  std::vector<float> out(512), expected(512);
  for (int i = 0; i < 512; ++i)
    expected[i] = x[i / 128 * 128 + 127 - i % 128] - x[i];
  kernel->run({4}, {arg(x), arg(out)});
  EXPECT_TRUE(sameBits(out, expected));
}

TEST(HostKernel, TreeReductionInALoopWithBarriers) {
  for (bool asWhile : {false, true}) {
    std::string step = R"(
      %in = arith.cmpi ult, %t, %s : index
      scf.if %in {
        %j = arith.addi %t, %s : index
        %p = memref.load %tile[%t] : memref<256xf32, #gpu.address_space<workgroup>>
        %q = memref.load %tile[%j] : memref<256xf32, #gpu.address_space<workgroup>>
        %r = arith.addf %p, %q : f32
        memref.store %r, %tile[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %half = arith.shrui %s, %c1 : index
    )";
    std::string loop = asWhile ? R"(
    %end = scf.while (%w = %c128) : (index) -> index {
      %more = arith.cmpi ugt, %w, %c0 : index
      scf.condition(%more) %w : index
    } do {
    ^bb0(%s: index):)" + step + "scf.yield %half : index }"
                               : R"(
    %end = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %c128) -> index {)" +
                                     step + "scf.yield %half : index }";
    auto kernel = load(module("%x: memref<1024xf32>, %o: memref<4xf32>", R"(
    %tile = memref.alloca() : memref<256xf32, #gpu.address_space<workgroup>>
    %i = gpu.global_id x
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    %v = memref.load %x[%i] : memref<1024xf32>
    memref.store %v, %tile[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier)" + loop + R"(
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %r = memref.load %tile[%c0] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %r, %o[%b] : memref<4xf32>
    })"),
                       {256});
    ASSERT_TRUE(kernel);
    auto x = randomFloats(1024, 6);
    std::vector<float> out(4), expected(4);
    for (int block = 0; block < 4; ++block) {
      std::vector<float> tile(x.begin() + block * 256,
                              x.begin() + block * 256 + 256);
      for (int s = 128; s > 0; s /= 2)
        for (int t = 0; t < s; ++t)
          tile[t] += tile[t + s];
      expected[block] = tile[0];
    }
    kernel->run({4}, {arg(x), arg(out)});
    EXPECT_TRUE(sameBits(out, expected)) << asWhile;
  }
}

TEST(HostKernel, LoopArgumentsOfEachThreadMayTradePlaces) {
  // Fibonacci by a swap of iter_args, with a barrier and a shared branch.
  auto kernel = load(module("%o: memref<64xi64>, %n: index, %odd: i1", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a0 = arith.index_cast %t : index to i64
    %b0 = arith.constant 1 : i64
    %p, %q = scf.for %k = %c0 to %n step %c1 iter_args(%a = %a0, %b = %b0)
        -> (i64, i64) {
      %c = arith.addi %a, %b : i64
      gpu.barrier
      scf.yield %b, %c : i64, i64
    }
    %r = scf.if %odd -> i64 {
      gpu.barrier
      %d = arith.subi %q, %p : i64
      scf.yield %d : i64
    } else {
      scf.yield %p : i64
    }
    memref.store %r, %o[%t] : memref<64xi64>)"),
                     {64});
  ASSERT_TRUE(kernel);
  for (int64_t odd : {0, 1}) {
    std::vector<int64_t> out(64), expected(64);
    for (int t = 0; t < 64; ++t) {
      int64_t a = t, b = 1;
      for (int k = 0; k < 20; ++k)
        std::tie(a, b) = std::pair(b, a + b);
      expected[t] = odd ? b - a : a;
    }
    kernel->run({1}, {arg(out), arg(int64_t(20)), arg(odd)});
    EXPECT_EQ(out, expected);
  }
}

TEST(HostKernel, BarrierUnderDivergentControlIsRefused) {
  auto kernel = LoadedKernel::fromText(module("", R"(
    %t = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %in = arith.cmpi slt, %t, %c3 : index
    scf.if %in {
      gpu.barrier
    })"),
                                       {32});
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().message.find("'gpu.barrier' op is under control"),
            std::string::npos)
      << kernel.error().message;
  auto loop = LoadedKernel::fromText(module("%c0: index, %c1: index", R"(
    %t = gpu.thread_id x
    scf.for %i = %c0 to %t step %c1 {
      gpu.barrier
    })"),
                                     {32});
  EXPECT_FALSE(loop);
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
    %m = memref.alloca() : memref<65536xf32>
    %v = memref.load %m[%i] : memref<65536xf32>
    memref.store %v, %o[%i] : memref<1xf32>)"),
                                     {256});
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("4 MiB"), std::string::npos);
}

TEST(HostKernel, PrivateMemoryBelongsToOneThread) {
  // Written before the barrier, read backwards after it.
  auto kernel = load(module("%o: memref<96x4xi32>", R"(
    %mine = memref.alloca() : memref<4xi32>
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    scf.for %k = %c0 to %c4 step %c1 {
      %m = arith.muli %t, %c4 : index
      %v = arith.addi %m, %k : index
      %w = arith.index_cast %v : index to i32
      memref.store %w, %mine[%k] : memref<4xi32>
    }
    gpu.barrier
    scf.for %k = %c0 to %c4 step %c1 {
      %r = arith.subi %c3, %k : index
      %w = memref.load %mine[%r] : memref<4xi32>
      memref.store %w, %o[%t, %k] : memref<96x4xi32>
    })"),
                     {96});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> out(384), expected(384);
  for (int t = 0; t < 96; ++t)
    for (int k = 0; k < 4; ++k)
      expected[t * 4 + k] = t * 4 + 3 - k;
  kernel->run({1}, {arg(out)});
  EXPECT_EQ(out, expected);
}

TEST(HostKernel, AllReduceInThreadOrder) {
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
  float sum = x[0], low = x[0], high = x[0], difference = x[0];
  for (int t = 1; t < 100; ++t) {
    sum += x[t];
    difference -= x[t];
    low = std::fmin(low, x[t]);
    high = std::fmax(high, x[t]);
  }
  for (int t = 0; t < 100; ++t) {
    expected[4 * t] = sum + x[t];
    expected[4 * t + 1] = low;
    expected[4 * t + 2] = high;
    expected[4 * t + 3] = difference;
  }
  kernel->run({1}, {arg(x), arg(out)});
  EXPECT_TRUE(sameBits(out, expected));
}

TEST(HostKernel, DeviceFunctionsWithAndWithoutStructure) {
  auto kernel = load(module("%o: memref<64xi64>", R"(
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i64
    %a = func.call @square(%i) : (i64) -> i64
    %b = func.call @steps(%i) : (i64) -> i64
    %s = arith.addi %a, %b : i64
    memref.store %s, %o[%t] : memref<64xi64>)",
                            R"(
  func.func @square(%x: i64) -> i64 {
    %b = gpu.block_dim x
    %c = arith.index_cast %b : index to i64
    %y = arith.muli %x, %x : i64
    %z = arith.addi %y, %c : i64
    return %z : i64
  }
  func.func @steps(%x: i64) -> i64 {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    cf.br ^head(%x, %c0 : i64, i64)
  ^head(%v: i64, %n: i64):
    %more = arith.cmpi sgt, %v, %c0 : i64
    cf.cond_br %more, ^body, ^exit
  ^body:
    %w = arith.shrsi %v, %c1 : i64
    %m = arith.addi %n, %c1 : i64
    cf.br ^head(%w, %m : i64, i64)
  ^exit:
    return %n : i64
  })"),
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<int64_t> out(64), expected(64);
  for (int64_t t = 0; t < 64; ++t)
    expected[t] = t * t + 64 + std::bit_width(uint64_t(t));
  kernel->run({1}, {arg(out)});
  EXPECT_EQ(out, expected);
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
  auto kernel = load(R"(
  #twice = affine_map<(d0) -> (d0 * 2)>
  func.func @entry(%x: memref<128xf32>, %o: memref<64xf32>)
      attributes {mgpu.dynamic_shared_bytes = 512 : i64} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %raw = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %raw[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<128xf32, #gpu.address_space<workgroup>>
    %j = affine.apply #twice(%t)
    %v = vector.load %x[%j] : memref<128xf32>, vector<2xf32>
    vector.store %v, %tile[%j]
        : memref<128xf32, #gpu.address_space<workgroup>>, vector<2xf32>
    gpu.barrier
    %r = arith.subi %c63, %t : index
    %k = affine.apply #twice(%r)
    %w = vector.load %tile[%k]
        : memref<128xf32, #gpu.address_space<workgroup>>, vector<2xf32>
    %d = arith.subf %w, %v : vector<2xf32>
    %s = vector.reduction <add>, %d : vector<2xf32> into f32
    memref.store %s, %o[%t] : memref<64xf32>
    return
  })",
                     {64});
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

TEST(HostKernel, DivergentLoopsOfEachThread) {
  // Each thread leaves its scf.while after its own number of steps.
  auto kernel = load(module("%o: memref<64xi64>, %x: memref<64xf32>", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %i = arith.index_cast %t : index to i64
    %n = scf.while (%v = %i) : (i64) -> i64 {
      %sq = arith.muli %v, %v : i64
      %more = arith.cmpi sgt, %sq, %i : i64
      scf.condition(%more) %v : i64
    } do {
    ^bb0(%v: i64):
      %w = arith.subi %v, %c1 : i64
      scf.yield %w : i64
    }
    %f = memref.load %x[%t] : memref<64xf32>
    %r = math.sqrt %f : f32
    %e = math.exp %r : f32
    memref.store %e, %x[%t] : memref<64xf32>
    memref.store %n, %o[%t] : memref<64xi64>)"),
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<int64_t> out(64), expected(64);
  std::vector<float> x(64), exps(64);
  for (int t = 0; t < 64; ++t) {
    expected[t] = int64_t(std::sqrt(double(t)));
    x[t] = float(t) / 7;
    exps[t] = std::exp(std::sqrt(x[t]));
  }
  kernel->run({1}, {arg(out), arg(x)});
  EXPECT_EQ(out, expected);
  EXPECT_TRUE(sameBits(x, exps));
}

TEST(KernelText, DependsOnMeaningAlone) {
  std::string text = canonicalText(module("%x: f32", R"(
    %y = arith.addf %x, %x : f32)"));
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text, canonicalText(module("%other: f32", R"(


    %name = arith.addf %other, %other : f32 loc("elsewhere.mlir":3:4))")));
  EXPECT_NE(text, canonicalText(module("%x: f32", R"(
    %y = arith.mulf %x, %x : f32)")));
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
