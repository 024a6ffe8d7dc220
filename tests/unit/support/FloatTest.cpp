// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Float.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace mgpu;

namespace {

/// Every finite value converts back to itself; the midpoint of two neighbours
/// goes to the even one; a hair to either side goes to the nearer.
template <typename Bits, typename Encode, typename Decode>
void checkAllNeighbours(Encode encode, Decode decode, uint32_t lastFinite,
                        uint32_t overflow) {
  for (uint32_t i = 0; i <= lastFinite; ++i) {
    Bits bits = Bits(i);
    double value = decode(bits);
    ASSERT_TRUE(std::isfinite(value)) << i;
    ASSERT_EQ(encode(value), bits);
    Bits negative = Bits(i | (1u << (sizeof(Bits) * 8 - 1)));
    ASSERT_EQ(encode(-value), negative);
    ASSERT_EQ(decode(negative), -value);
    // Past the last finite value the type would go on with the same spacing.
    double next = i < lastFinite ? decode(Bits(i + 1))
                                 : value + (value - decode(Bits(i - 1)));
    ASSERT_LT(value, next);
    Bits upper = Bits(i < lastFinite ? i + 1 : overflow);
    double middle = value + (next - value) / 2;
    ASSERT_EQ(encode(middle), i % 2 == 0 ? bits : upper) << i;
    ASSERT_EQ(encode(std::nextafter(middle, 0)), bits) << i;
    ASSERT_EQ(encode(std::nextafter(middle, INFINITY)), upper) << i;
  }
}

TEST(Float, Bf16RoundsToNearestEven) {
  checkAllNeighbours<uint16_t>(toBf16, fromBf16, 0x7f7f, 0x7f80);
}
TEST(Float, F16RoundsToNearestEven) {
  checkAllNeighbours<uint16_t>(toF16, fromF16, 0x7bff, 0x7c00);
}
TEST(Float, F8E5M2RoundsToNearestEven) {
  checkAllNeighbours<uint8_t>(toF8E5M2, fromF8E5M2, 0x7b, 0x7c);
}
TEST(Float, F8E4M3FNRoundsToNearestEven) {
  checkAllNeighbours<uint8_t>(toF8E4M3FN, fromF8E4M3FN, 0x7e, 0x7f);
}

TEST(Float, Bf16IsTheTopOfF32) {
  for (uint32_t i = 0; i < 0x7f80; ++i)
    ASSERT_EQ(fromBf16(uint16_t(i)), double(std::bit_cast<float>(i << 16)));
}

TEST(Float, KnownValues) {
  EXPECT_EQ(fromF8E4M3FN(0x7e), 448);
  EXPECT_EQ(fromF8E5M2(0x7b), 57344);
  EXPECT_EQ(fromF16(0x7bff), 65504);
  EXPECT_EQ(fromF16(1), std::ldexp(1, -24));
  EXPECT_EQ(toF16(1.0), 0x3c00);
}

TEST(Float, InfinityAndNan) {
  EXPECT_EQ(toBf16(INFINITY), 0x7f80);
  EXPECT_EQ(toF16(-INFINITY), 0xfc00);
  EXPECT_EQ(toF8E4M3FN(INFINITY), 0x7f);
  EXPECT_TRUE(std::isnan(fromBf16(toBf16(NAN))));
  EXPECT_TRUE(std::isnan(fromF16(toF16(NAN))));
  EXPECT_TRUE(std::isnan(fromF8E5M2(toF8E5M2(NAN))));
  EXPECT_TRUE(std::isnan(fromF8E4M3FN(toF8E4M3FN(NAN))));
  EXPECT_EQ(fromF16(0xfc00), -INFINITY);
}

} // namespace
