// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workgroup buffers of several types, dynamic ones, and kernels in f64.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mgpu::kernels {
namespace {

TEST(WorkgroupMemory, BuffersOfSeveralTypesDoNotOverlap) {
  // Each buffer is written whole by its neighbours' threads and read after the
  // barrier. Types have 1, 2, 4, 8 and 16 bytes, buffers one and two
  // dimensions.
  auto kernel = load(module("%o: memref<3x32x6xf64>", R"(
    %a = memref.alloca() : memref<32xi8, #gpu.address_space<workgroup>>
    %b = memref.alloca() : memref<32xf16, #gpu.address_space<workgroup>>
    %c = memref.alloca() : memref<4x8xi32, #gpu.address_space<workgroup>>
    %d = memref.alloca() : memref<32xf64, #gpu.address_space<workgroup>>
    %e = memref.alloca() : memref<32xvector<2xf64>, #gpu.address_space<workgroup>>
    %g = memref.alloca() : memref<32xi1, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %block = gpu.block_id x
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %i = arith.muli %block, %c32 : index
    %n = arith.addi %i, %t : index
    %i32 = arith.index_cast %n : index to i32
    %i8 = arith.trunci %i32 : i32 to i8
    %f64 = arith.sitofp %i32 : i32 to f64
    %f16 = arith.sitofp %i32 : i32 to f16
    %row = arith.divui %t, %c8 : index
    %col = arith.remui %t, %c8 : index
    %neg = arith.negf %f64 : f64
    %pair = vector.from_elements %f64, %neg : vector<2xf64>
    %odd = arith.trunci %i32 : i32 to i1
    memref.store %i8, %a[%t] : memref<32xi8, #gpu.address_space<workgroup>>
    memref.store %f16, %b[%t] : memref<32xf16, #gpu.address_space<workgroup>>
    memref.store %i32, %c[%row, %col] : memref<4x8xi32, #gpu.address_space<workgroup>>
    memref.store %f64, %d[%t] : memref<32xf64, #gpu.address_space<workgroup>>
    memref.store %pair, %e[%t] : memref<32xvector<2xf64>, #gpu.address_space<workgroup>>
    memref.store %odd, %g[%t] : memref<32xi1, #gpu.address_space<workgroup>>
    gpu.barrier
    %r = arith.subi %c31, %t : index
    %rrow = arith.divui %r, %c8 : index
    %rcol = arith.remui %r, %c8 : index
    %la = memref.load %a[%r] : memref<32xi8, #gpu.address_space<workgroup>>
    %lb = memref.load %b[%r] : memref<32xf16, #gpu.address_space<workgroup>>
    %lc = memref.load %c[%rrow, %rcol] : memref<4x8xi32, #gpu.address_space<workgroup>>
    %ld = memref.load %d[%r] : memref<32xf64, #gpu.address_space<workgroup>>
    %le = memref.load %e[%r] : memref<32xvector<2xf64>, #gpu.address_space<workgroup>>
    %lg = memref.load %g[%r] : memref<32xi1, #gpu.address_space<workgroup>>
    %fa = arith.sitofp %la : i8 to f64
    %fb = arith.extf %lb : f16 to f64
    %fc = arith.sitofp %lc : i32 to f64
    %fe = vector.extract %le[1] : f64 from vector<2xf64>
    %fg = arith.uitofp %lg : i1 to f64
    %k0 = arith.constant 0 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %k4 = arith.constant 4 : index
    %k5 = arith.constant 5 : index
    memref.store %fa, %o[%block, %t, %k0] : memref<3x32x6xf64>
    memref.store %fb, %o[%block, %t, %c1] : memref<3x32x6xf64>
    memref.store %fc, %o[%block, %t, %k2] : memref<3x32x6xf64>
    memref.store %ld, %o[%block, %t, %k3] : memref<3x32x6xf64>
    memref.store %fe, %o[%block, %t, %k4] : memref<3x32x6xf64>
    memref.store %fg, %o[%block, %t, %k5] : memref<3x32x6xf64>)"),
                     {32});
  ASSERT_TRUE(kernel);
  std::vector<double> out(576), expected(576);
  for (int block = 0; block < 3; ++block)
    for (int t = 0; t < 32; ++t) {
      double n = block * 32 + 31 - t;
      double values[] = {n, n, n, n, -n, double(int(n) % 2)};
      std::copy(values, values + 6, &expected[(block * 32 + t) * 6]);
    }
  kernel->run({3}, {arg(out)});
  EXPECT_EQ(out, expected);
}

TEST(WorkgroupMemory, TwoViewsOfOneDynamicBuffer) {
  // 64 f64 and, behind them, 64 i16; asked for twice, it is the same memory.
  auto kernel = load(R"(
  func.func @entry(%x: memref<64xf64>, %o: memref<64xf64>)
      attributes {mgpu.dynamic_shared_bytes = 640 : i64} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %c512 = arith.constant 512 : index
    %raw = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %again = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %reals = memref.view %raw[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<64xf64, #gpu.address_space<workgroup>>
    %tags = memref.view %again[%c512][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<64xi16, #gpu.address_space<workgroup>>
    %v = memref.load %x[%t] : memref<64xf64>
    %i = arith.index_cast %t : index to i16
    memref.store %v, %reals[%t] : memref<64xf64, #gpu.address_space<workgroup>>
    memref.store %i, %tags[%t] : memref<64xi16, #gpu.address_space<workgroup>>
    gpu.barrier
    %r = arith.subi %c63, %t : index
    %w = memref.load %reals[%r] : memref<64xf64, #gpu.address_space<workgroup>>
    %j = memref.load %tags[%r] : memref<64xi16, #gpu.address_space<workgroup>>
    %f = arith.sitofp %j : i16 to f64
    %s = arith.addf %w, %f : f64
    memref.store %s, %o[%t] : memref<64xf64>
    return
  })",
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<double> x(64), out(64), expected(64);
  for (int t = 0; t < 64; ++t)
    x[t] = std::ldexp(1.0, t % 40);
  for (int t = 0; t < 64; ++t)
    expected[t] = x[63 - t] + (63 - t);
  kernel->run({1}, {arg(x), arg(out)});
  EXPECT_EQ(out, expected);
}

TEST(DoubleKernel, DotProductsRoundAfterEachOperation) {
  // An accumulator in f64 over a loop, a tree over workgroup memory after it.
  auto kernel =
      load(module("%x: memref<128x33xf64>, %o: memref<2xf64>, %s: f64",
                  R"(
    %tile = memref.alloca() : memref<64xf64, #gpu.address_space<workgroup>>
    %i = gpu.global_id x
    %t = gpu.thread_id x
    %block = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %c32 = arith.constant 32 : index
    %c33 = arith.constant 33 : index
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %k = %c0 to %c33 step %c1 iter_args(%acc = %zero) -> f64 {
      %v = memref.load %x[%i, %k] : memref<128x33xf64>
      %p = arith.mulf %v, %s : f64
      %n = arith.addf %acc, %p : f64
      scf.yield %n : f64
    }
    memref.store %sum, %tile[%t] : memref<64xf64, #gpu.address_space<workgroup>>
    gpu.barrier
    %end = scf.for %k = %c0 to %c6 step %c1 iter_args(%half = %c32) -> index {
      %in = arith.cmpi ult, %t, %half : index
      scf.if %in {
        %j = arith.addi %t, %half : index
        %p = memref.load %tile[%t] : memref<64xf64, #gpu.address_space<workgroup>>
        %q = memref.load %tile[%j] : memref<64xf64, #gpu.address_space<workgroup>>
        %r = arith.addf %p, %q : f64
        memref.store %r, %tile[%t] : memref<64xf64, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %next = arith.shrui %half, %c1 : index
      scf.yield %next : index
    }
    %all = memref.load %tile[%c0] : memref<64xf64, #gpu.address_space<workgroup>>
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      memref.store %all, %o[%block] : memref<2xf64>
    })"),
           {64});
  ASSERT_TRUE(kernel);
  std::vector<double> x(128 * 33), out(2), expected(2);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(double(i)) * 10;
  double scale = 0.1;
  for (int block = 0; block < 2; ++block) {
    double sums[64];
    for (int t = 0; t < 64; ++t) {
      volatile double sum = 0, product;
      for (int k = 0; k < 33; ++k) {
        product = x[size_t(block * 64 + t) * 33 + k] * scale;
        sum = sum + product;
      }
      sums[t] = sum;
    }
    for (int half = 32; half > 0; half /= 2)
      for (int t = 0; t < half; ++t)
        sums[t] += sums[t + half];
    expected[block] = sums[0];
  }
  kernel->run({2}, {arg(x), arg(out), std::bit_cast<uint64_t>(scale)});
  EXPECT_TRUE(sameBits(out, expected)) << out[0] << " " << expected[0];
}

} // namespace
} // namespace mgpu::kernels
