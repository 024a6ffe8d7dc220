// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostCollective.h"
#include "device/host/SmallFloat.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace {

using namespace mgpu;
using namespace mgpu::device;

/// The value of a pattern from the definition of the format.
double decode(uint32_t bits, int exponentBits, int mantissaBits, bool hasInf) {
  int bias = (1 << (exponentBits - 1)) - 1;
  uint32_t top = (1u << exponentBits) - 1;
  uint32_t exponent = (bits >> mantissaBits) & top;
  uint32_t mantissa = bits & ((1u << mantissaBits) - 1);
  double sign = bits >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  if (hasInf && exponent == top)
    return mantissa ? NAN : sign * INFINITY;
  if (!hasInf && exponent == top && mantissa == (1u << mantissaBits) - 1)
    return NAN;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - mantissaBits);
  return sign * std::ldexp(mantissa + (1u << mantissaBits),
                           int(exponent) - bias - mantissaBits);
}

template <typename T>
void checkFormat(int exponentBits, int mantissaBits, bool hasInf) {
  uint32_t count = 1u << (1 + exponentBits + mantissaBits);
  for (uint32_t bits = 0; bits < count; ++bits) {
    double expected = decode(bits, exponentBits, mantissaBits, hasInf);
    T value;
    value.bits = decltype(value.bits)(bits);
    float got = T::toFloat(value);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(T::toFloat(T::fromFloat(got)))) << bits;
      continue;
    }
    ASSERT_EQ(double(got), expected) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << bits;
    ASSERT_EQ(uint32_t(T::fromFloat(got).bits), bits);
    // Between two neighbours: the nearer one, and the even one of a tie.
    uint32_t magnitude = bits & (count / 2 - 1);
    double next = decode(bits + 1, exponentBits, mantissaBits, hasInf);
    if (magnitude + 1 == count / 2 || !std::isfinite(next) ||
        !std::isfinite(expected))
      continue;
    double middle = (expected + next) / 2;
    float tie = float(middle);
    if (double(tie) != middle)
      continue; // below float's own precision (bf16 subnormals)
    uint32_t even = bits % 2 ? bits + 1 : bits;
    ASSERT_EQ(uint32_t(T::fromFloat(tie).bits), even);
    float toward = std::nextafter(tie, float(expected));
    ASSERT_EQ(uint32_t(T::fromFloat(toward).bits), bits);
    float away = std::nextafter(tie, float(next));
    ASSERT_EQ(uint32_t(T::fromFloat(away).bits), bits + 1);
  }
}

TEST(SmallFloat, EveryPatternAndEveryTie) {
  checkFormat<Half>(5, 10, true);
  checkFormat<BFloat16>(8, 7, true);
  checkFormat<Float8E4M3FN>(4, 3, false);
  checkFormat<Float8E5M2>(5, 2, true);
}

TEST(SmallFloat, Overflow) {
  EXPECT_EQ(Half::fromFloat(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half::fromFloat(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half::fromFloat(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Float8E4M3FN::fromFloat(464.0f).bits, 0x7e);
  EXPECT_EQ(Float8E4M3FN::fromFloat(465.0f).bits, 0x7f);
  EXPECT_EQ(Float8E4M3FN::fromFloat(-INFINITY).bits, 0xff);
  EXPECT_EQ(Float8E5M2::fromFloat(1e30f).bits, 0x7c);
  EXPECT_EQ(BFloat16::fromFloat(std::numeric_limits<float>::max()).bits,
            0x7f80);
}

template <typename T>
T combined(ElementType type, ReductionKind kind, T a, T b) {
  // Off by one byte: addresses need no alignment.
  std::byte left[1 + sizeof(T)], right[1 + sizeof(T)];
  std::memcpy(left + 1, &a, sizeof(T));
  std::memcpy(right + 1, &b, sizeof(T));
  reduceFunction(type, kind)(left + 1, right + 1, 1);
  std::memcpy(&a, left + 1, sizeof(T));
  return a;
}

TEST(Reduce, IntegersWrapAndCompareSigned) {
  EXPECT_EQ(combined<int8_t>(ElementType::I8, ReductionKind::Sum, 127, 1),
            -128);
  EXPECT_EQ(combined<int16_t>(ElementType::I16, ReductionKind::Prod, -32768, 3),
            -32768);
  EXPECT_EQ(combined<int32_t>(ElementType::I32, ReductionKind::Min, -1, 1), -1);
  EXPECT_EQ(combined<int64_t>(ElementType::I64, ReductionKind::Sum, INT64_MAX,
                              INT64_MAX),
            -2);
  EXPECT_EQ(combined<int64_t>(ElementType::Index, ReductionKind::Max, -1, 1),
            1);
}

TEST(Reduce, BooleansAreOrAndAnd) {
  for (uint8_t a : {0, 1, 2})
    for (uint8_t b : {0, 1, 255})
      for (auto kind : {ReductionKind::Sum, ReductionKind::Prod,
                        ReductionKind::Min, ReductionKind::Max}) {
        bool isOr = kind == ReductionKind::Sum || kind == ReductionKind::Max;
        EXPECT_EQ(combined<uint8_t>(ElementType::I1, kind, a, b),
                  isOr ? (a || b) : (a && b));
      }
}

TEST(Reduce, MinAndMaxPropagateNanAndOrderZeros) {
  for (auto kind : {ReductionKind::Min, ReductionKind::Max}) {
    EXPECT_TRUE(std::isnan(combined(ElementType::F32, kind, NAN, 1.0f)));
    EXPECT_TRUE(std::isnan(combined(ElementType::F32, kind, 1.0f, NAN)));
    bool negative = kind == ReductionKind::Min;
    EXPECT_EQ(std::signbit(combined(ElementType::F64, kind, -0.0, 0.0)),
              negative);
    EXPECT_EQ(std::signbit(combined(ElementType::F64, kind, 0.0, -0.0)),
              negative);
    EXPECT_EQ(combined(ElementType::F64, kind, 2.0, -3.0),
              negative ? -3.0 : 2.0);
  }
}

TEST(Reduce, SmallFloatsRoundAfterEachStep) {
  uint16_t big = 0x6800; // 2048 in f16: spacing 2
  uint16_t one = Half::fromFloat(1).bits;
  EXPECT_EQ(combined<uint16_t>(ElementType::F16, ReductionKind::Sum, big, one),
            big);
  uint16_t bf = BFloat16::fromFloat(256).bits; // spacing 2
  uint16_t three = BFloat16::fromFloat(3).bits;
  EXPECT_EQ(
      combined<uint16_t>(ElementType::BF16, ReductionKind::Sum, bf, three),
      BFloat16::fromFloat(260).bits); // 259 is a tie: even is 260
}

} // namespace
