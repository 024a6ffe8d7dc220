// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches, loops and barriers on the host target.
#include "KernelCases.h"
#include "KernelRunner.h"
#include "kernels/host/Functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <tuple>

namespace mgpu::kernels {
namespace {

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
  auto kernel = load(kernelCase("reverse").text, {128});
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
    exps[t] = functions::exp(std::sqrt(x[t]));
  }
  kernel->run({1}, {arg(out), arg(x)});
  EXPECT_EQ(out, expected);
  EXPECT_TRUE(sameBits(x, exps));
}

// Both arguments are one buffer, which is written in fours and read between.
TEST(HostKernel, ABufferMayBeTwoArguments) {
  auto kernel = load(module("%x: memref<256xi32>, %v: memref<256xi32>, "
                            "%o: memref<64xi32>",
                            R"(
    %t = gpu.thread_id x
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %k4 = arith.constant 4 : index
    %one = arith.constant 1 : i32
    %thousand = arith.constant 1000 : i32
    %n = arith.index_cast %t : index to i32
    %odd = arith.ori %n, %one : i32
    %i0 = arith.muli %t, %k4 : index
    %i1 = arith.addi %i0, %k1 : index
    %i2 = arith.addi %i0, %k2 : index
    %i3 = arith.addi %i0, %k3 : index
    memref.store %n, %x[%i0] : memref<256xi32>
    memref.store %n, %x[%i1] : memref<256xi32>
    memref.store %n, %x[%i2] : memref<256xi32>
    memref.store %n, %x[%i3] : memref<256xi32>
    %warp = gpu.subgroup_id : index
    %j = arith.addi %i0, %warp : index
    %r = memref.load %v[%j] : memref<256xi32>
    memref.store %odd, %x[%i2] : memref<256xi32>
    %l = arith.addi %j, %k1 : index
    %s = memref.load %v[%l] : memref<256xi32>
    %q = arith.muli %r, %thousand : i32
    %w = arith.addi %q, %s : i32
    memref.store %w, %o[%t] : memref<64xi32>)"),
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x(256), out(64), expected(64);
  for (int32_t t = 0; t < 64; ++t)
    expected[t] = 1000 * t + (t < 32 ? t : t | 1);
  kernel->run({1}, {arg(x), arg(x), arg(out)});
  EXPECT_EQ(out, expected);
}

} // namespace
} // namespace mgpu::kernels
