// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_SMALLFLOAT_H
#define MGPU_DEVICE_HOST_SMALLFLOAT_H

// f16, bf16 and the two f8 formats as stored, to and from float; rounding is
// to nearest, ties to even.

#include <bit>
#include <cstdint>

namespace mgpu::device {

/// The value that stands for all above the largest finite one.
enum class Overflow { Infinity, Nan };

/// A float of 1 sign, `E` exponent and `M` mantissa bits. With Overflow::Nan
/// there are no infinities, and only the all-ones pattern is NaN (f8E4M3FN).
template <typename Bits, unsigned E, unsigned M, Overflow O>
struct SmallFloat {
  Bits bits = 0;

  static constexpr int bias = (1 << (E - 1)) - 1;
  static constexpr uint32_t magnitudeMask = (1u << (E + M)) - 1;
  static constexpr uint32_t infinity = ((1u << E) - 1) << M;
  static constexpr uint32_t nan =
      O == Overflow::Nan ? magnitudeMask : infinity | (1u << (M - 1));

  static float toFloat(SmallFloat value) {
    uint32_t sign = uint32_t(value.bits >> (E + M)) << 31;
    uint32_t magnitude = value.bits & magnitudeMask;
    if (O == Overflow::Nan ? magnitude == nan : magnitude > infinity)
      return std::bit_cast<float>(sign | 0x7fc00000u);
    if (O == Overflow::Infinity && magnitude == infinity)
      return std::bit_cast<float>(sign | 0x7f800000u);
    if constexpr (E == 8)
      return std::bit_cast<float>(sign | magnitude << (23 - M));
    // Aligned to float's fields the value is too small by a power of two; the
    // product is exact, also for subnormals.
    constexpr uint32_t scale = uint32_t(127 + 127 - bias) << 23;
    float scaled = std::bit_cast<float>(magnitude << (23 - M)) *
                   std::bit_cast<float>(scale);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
  }

  static SmallFloat fromFloat(float value) {
    uint32_t raw = std::bit_cast<uint32_t>(value);
    uint32_t sign = (raw >> 31) << (E + M);
    uint32_t magnitude = raw & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
      return {Bits(sign | nan)};
    constexpr int shift = 23 - int(M);
    constexpr uint32_t smallestNormal = uint32_t(127 - bias + 1) << 23;
    uint32_t rounded;
    if (magnitude >= smallestNormal || E == 8) {
      uint32_t rebased =
          E == 8 ? magnitude : magnitude - (uint32_t(127 - bias) << 23);
      rounded = roundShift(rebased, shift);
    } else {
      // The mantissa with its hidden bit, shifted to the subnormal's unit.
      int exponent = int(magnitude >> 23);
      int extra = 127 - bias + 1 - exponent;
      if (extra > int(M) + 2)
        return {Bits(sign)};
      rounded = roundShift((magnitude & 0x7fffffu) | 0x800000u, shift + extra);
    }
    uint32_t limit = O == Overflow::Nan ? nan : infinity;
    if (rounded >= limit)
      rounded = limit;
    return {Bits(sign | rounded)};
  }

private:
  static uint32_t roundShift(uint32_t value, int shift) {
    uint32_t half = (1u << (shift - 1)) - 1 + ((value >> shift) & 1);
    return (value + half) >> shift;
  }
};

using Half = SmallFloat<uint16_t, 5, 10, Overflow::Infinity>;
using BFloat16 = SmallFloat<uint16_t, 8, 7, Overflow::Infinity>;
using Float8E4M3FN = SmallFloat<uint8_t, 4, 3, Overflow::Nan>;
using Float8E5M2 = SmallFloat<uint8_t, 5, 2, Overflow::Infinity>;

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_SMALLFLOAT_H
