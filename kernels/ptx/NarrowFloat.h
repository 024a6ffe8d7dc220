// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_NARROWFLOAT_H
#define MGPU_KERNELS_PTX_NARROWFLOAT_H

// Floats of PTX that C++ does not have, and rounding to any of them (ISA 9.0,
// sections 5.2.3 and 9.7.3).

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace mgpu::kernels::ptx {

enum class Round : uint8_t { Nearest, NearestAway, Zero, Down, Up };

struct FloatFormat {
  int exponentBits, mantissaBits;
  bool hasInfinity = true; ///< e4m3: the largest exponent is of numbers, too
};
inline constexpr FloatFormat halfFormat{5, 10}, bfloatFormat{8, 7},
    floatFormat{8, 23}, tf32Format{8, 10}, e4m3Format{4, 3, false},
    e5m2Format{5, 2};

/// The bits of `value` in a format. `saturates`: what is too large, and for
/// formats of 8 bits infinity, becomes the largest number.
uint64_t encode(double value, const FloatFormat &to, Round round,
                bool saturates = false);
double decodeFloat(uint64_t bits, const FloatFormat &from);

/// The exact sum, product and sum, quotient or root, rounded so that a second
/// rounding to at most 51 bits is right: to the odd one of its neighbours.
double oddSum(double a, double b);
double oddFma(double a, double b, double c);
double oddQuotient(double a, double b);
double oddRoot(double a);

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
template <typename T>
struct Pair {
  T low, high;
};

inline float toFloat(float value) { return value; }
inline float toFloat(Bfloat value) {
  return std::bit_cast<float>(uint32_t(value.bits) << 16);
}
inline float toFloat(Half value) {
  const uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  const uint32_t rest = value.bits & 0x7fff;
  if (rest >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // The exponents' biases differ by 112, subnormals included.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

/// To nearest, ties to even. A sum, difference or product of two values of the
/// format, computed in float, is rounded so as the exact one is.
inline Bfloat toBfloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return {uint16_t(value != value ? 0x7fff : rounded)};
}
inline Half toHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t twice = bits + bits;
  const uint32_t exponent = twice & 0xff000000;
  const uint32_t bias = exponent < 0x71000000 ? 0x71000000 : exponent;
  // Adding a number whose last place is the half's rounds there.
  const float sized =
      std::bit_cast<float>(bits & 0x7fffffff) * 0x1p112f * 0x1p-110f;
  const auto sum = std::bit_cast<uint32_t>(
      std::bit_cast<float>((bias >> 1) + 0x07800000) + sized);
  const uint32_t rounded = (sum >> 13 & 0x7c00) + (sum & 0x0fff);
  const uint32_t sign = bits >> 16 & 0x8000;
  return {uint16_t(twice > 0xff000000 ? 0x7fff : sign | rounded)};
}
template <typename T>
inline T fromFloat(float value) {
  if constexpr (std::is_same_v<T, Half>)
    return toHalf(value);
  else if constexpr (std::is_same_v<T, Bfloat>)
    return toBfloat(value);
  else
    return value;
}
template <typename T>
inline constexpr FloatFormat formatOf =
    std::is_same_v<T, Half> ? halfFormat : bfloatFormat;

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_NARROWFLOAT_H
