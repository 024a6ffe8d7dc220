// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices held by subgroups, on the host target, against the same in C++.
#include "KernelCases.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace mgpu::kernels {
namespace {

double half(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double magnitude = exponent ? std::ldexp(1024 + mantissa, exponent - 25)
                              : std::ldexp(mantissa, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

/// To tf32: 10 bits of mantissa, to nearest, ties away from zero.
double tf32(float x) {
  int exponent = 0;
  double fraction = std::frexp(double(x), &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
}

/// Element `at` of a buffer as the product multiplies or adds it.
double valueAt(const std::vector<std::byte> &bytes, size_t at,
               const std::string &type, bool isFactor) {
  auto read = [&](auto zero) {
    std::memcpy(&zero, bytes.data() + at * sizeof zero, sizeof zero);
    return zero;
  };
  if (type == "f16")
    return half(read(uint16_t()));
  if (type == "f32")
    return isFactor ? tf32(read(float())) : read(float());
  if (type == "f64")
    return read(double());
  if (type == "i32")
    return read(int32_t());
  return type == "ui8" ? read(uint8_t()) : read(int8_t());
}

TEST(HostMatrix, ProductsOfEveryShapeAndType) {
  for (const MatrixProductCase &test : matrixProducts()) {
    SCOPED_TRACE(test.name);
    KernelCase each = test.asCase();
    auto kernel = load(each.text, each.block);
    ASSERT_TRUE(kernel);
    auto buffers = each.fill(3);
    if (test.stored == "f32") // tf32 loses bits of it
      for (int which : {0, 1})
        for (size_t k = 0; k < each.buffers[size_t(which)].count; ++k) {
          float x = 0;
          std::memcpy(&x, &buffers[size_t(which)][4 * k], 4);
          x += x / 1024 + x / 2048 * float(k % 3);
          std::memcpy(&buffers[size_t(which)][4 * k], &x, 4);
        }
    auto before = buffers;
    kernel->run(each.grid, {arg(buffers[0]), arg(buffers[1]), arg(buffers[2])});
    int m = test.m, n = test.n, all = 2 * test.k, wrong = 0, changed = 0;
    for (int tile = 0; tile < 4; ++tile)
      for (int row = 0; row < m; ++row)
        for (int column = 0; column < n; ++column) {
          size_t at = size_t((tile * m + row) * n + column);
          double sum = valueAt(before[2], at, test.sum, false);
          double old = sum;
          int64_t modulo = int64_t(sum);
          for (int k = 0; k < all; ++k) {
            size_t a = size_t(test.transposed ? (tile * all + k) * m + row
                                              : (tile * m + row) * all + k),
                   b = size_t(test.transposed ? (tile * n + column) * all + k
                                              : (tile * all + k) * n + column);
            const std::string &type =
                test.factor.ends_with("i8") ? test.factor : test.stored;
            double product = valueAt(before[0], a, type, true) *
                             valueAt(before[1], b, type, true);
            modulo += int64_t(product);
            // Exact for halves; rounded as the sum is for others.
            sum = test.sum == "f64"
                      ? sum + product
                      : double(float(float(sum) + float(product)));
            if (test.sum == "f16" && (k + 1) % test.k == 0) {
              _Float16 rounded = _Float16(float(sum));
              sum = double(float(rounded));
            }
          }
          if (test.sum == "i32")
            sum = int32_t(uint32_t(uint64_t(modulo)));
          double got = valueAt(buffers[2], at, test.sum, false);
          wrong += got != sum;
          changed += got != old;
        }
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(changed, m * n);
  }
}

TEST(HostMatrix, LanesHoldTheMatrixBetweenThem) {
  KernelCase each;
  for (const KernelCase &test : matrixCases())
    if (test.name == "matrix_fragments")
      each = test;
  auto kernel = load(each.text, each.block);
  ASSERT_TRUE(kernel);
  auto buffers = each.fill(5);
  kernel->run(each.grid, {arg(buffers[0]), arg(buffers[1]), arg(buffers[2])});
  // PTX ISA, m16n8k16: sum i of lane 4 g + t is at row g, or g + 8 from i = 2
  // on, and column 2 t + i % 2; two tiles lie side by side.
  int wrong = 0;
  for (int lane = 0; lane < 32; ++lane)
    for (int k = 0; k < 8; ++k) {
      int row = lane / 4 + k % 4 / 2 * 8,
          column = lane % 4 * 2 + k % 2 + k / 4 * 8;
      double expected =
          2 * valueAt(buffers[0], size_t(row * 16 + column), "f16", false);
      for (int subgroup : {0, 1})
        wrong += valueAt(buffers[1], size_t(subgroup * 256 + k * 32 + lane),
                         "f32", false) != expected;
      wrong += valueAt(buffers[2], size_t((column + 2) * 20 + row + 2), "f32",
                       false) != expected;
    }
  EXPECT_EQ(wrong, 0);
}

TEST(HostMatrix, LaneZeroWorksForItsSubgroup) {
  const KernelCase &each = matrixCases().back();
  ASSERT_EQ(each.name, "lane_zero");
  auto kernel = load(each.text, each.block);
  ASSERT_TRUE(kernel);
  auto buffers = each.fill(9);
  auto before = buffers;
  kernel->run(each.grid, {arg(buffers[0]), arg(buffers[1]), arg(buffers[2]),
                          arg(buffers[3])});
  auto at = [](const std::vector<std::byte> &bytes, int k) {
    return valueAt(bytes, size_t(k), "f32", false);
  };
  for (int block = 0; block < 2; ++block)
    for (int t = 0; t < 64; ++t) {
      int lane = t % 32, subgroup = t / 32;
      auto x = [&](int k) { return at(before[0], block * 96 + k); };
      double sum = 0, held[2] = {0, 0};
      for (int k = 0; k < 32; ++k)
        sum += x(subgroup * 32 + k);
      for (int trip = 0; trip < 2; ++trip)
        for (int k = 0; k < 2; ++k) // both deal rows of 16 two by two
          held[k] += x(lane + k) + sum;
      int o = (block * 64 + t) * 4;
      for (int k = 0; k < 2; ++k)
        EXPECT_EQ(at(buffers[1], o + k), held[k]) << t;
      EXPECT_EQ(at(buffers[1], o + 3), x(t) > 0.5) << t;
      EXPECT_EQ(valueAt(buffers[2], size_t(block * 64 + t), "i32", false),
                subgroup + 1);
      EXPECT_EQ(at(buffers[3], o), x(t));
      EXPECT_EQ(at(buffers[3], o + 2), x(t));
      EXPECT_EQ(at(buffers[3], o + 3), lane == 0 ? x(t) : at(before[3], o + 3));
    }
}

TEST(HostMatrix, WhatNoTargetHasIsRefusedByName) {
  const std::string a = "!gpu.mma_matrix<16x16xf16, \"AOp\">",
                    b = "!gpu.mma_matrix<16x16xf16, \"BOp\">",
                    c = "!gpu.mma_matrix<16x16xf32, \"COp\">";
  auto load = [](const std::string &name, const std::string &type,
                 const std::string &of = "%x",
                 const std::string &memory = "memref<64x64xf16>") {
    return "%" + name + " = gpu.subgroup_mma_load_matrix " + of +
           "[%c0, %c0] {leadDimension = 64 : index} : " + memory + " -> " +
           type + "\n";
  };
  struct {
    std::string body;
    uint32_t threads;
    const char *message;
  } const refused[] = {
      {load("m", a), 48, "whole subgroups of 32 threads"},
      {load("m", "!gpu.mma_matrix<16x32xf16, \"AOp\">"), 32,
       "this matrix is 16x32"},
      {load("m", "!gpu.mma_matrix<16x16xf32, \"COp\">"), 32,
       "memory of 'f16'; they must be of one type"},
      {load("m", a) + load("n", "!gpu.mma_matrix<16x32xf16, \"BOp\">"), 32, ""},
      {load("v", "!gpu.mma_matrix<16x16xf16, \"COp\">") +
           "%r = gpu.subgroup_mma_elementwise addi %v, %v : "
           "(!gpu.mma_matrix<16x16xf16, \"COp\">, "
           "!gpu.mma_matrix<16x16xf16, \"COp\">) -> "
           "!gpu.mma_matrix<16x16xf16, \"COp\">",
       32, "operands that do not go with addi"},
      {"%lane = gpu.lane_id\ngpu.warp_execute_on_lane_0(%lane)[16] {\n}", 32,
       "is for subgroups of 16 lanes"},
      {"%lane = gpu.lane_id\n%v = vector.load %x[%c0, %lane] : "
       "memref<64x64xf16>, vector<1xf16>\n"
       "gpu.warp_execute_on_lane_0(%lane)[32] args(%v : vector<1xf16>) {\n"
       "^bb0(%all: vector<32xf16>):\n"
       "  vector.store %all, %x[%c0, %c0] : memref<64x64xf16>, "
       "vector<32xf16>\n}",
       40, "takes a vector from all 32 lanes"},
      {"%lane = gpu.lane_id\ngpu.warp_execute_on_lane_0(%lane)[32] {\n"
       "  gpu.barrier\n}",
       32, "where there is one lane alone"},
  };
  for (const auto &[body, threads, message] : refused) {
    auto kernel = LoadedKernel::fromText(
        module("%x: memref<64x64xf16>",
               "%c0 = arith.constant 0 : index\n" + body),
        {threads});
    if (!*message) {
      EXPECT_TRUE(kernel) << kernel.error().message;
      continue;
    }
    ASSERT_FALSE(kernel) << body;
    EXPECT_EQ(kernel.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(kernel.error().message.find(message), std::string::npos)
        << kernel.error().message;
  }
}

} // namespace
} // namespace mgpu::kernels
