// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Float.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mgpu {
namespace {

struct Format {
  int exponentBits;
  int mantissaBits;
  bool hasInfinity;

  int minExponent() const { return 2 - (1 << (exponentBits - 1)); }
  uint64_t signBit() const { return 1ull << (exponentBits + mantissaBits); }
  /// All exponent bits set, mantissa zero.
  uint64_t topBinade() const {
    return ((1ull << exponentBits) - 1) << mantissaBits;
  }
  uint64_t nan() const {
    return hasInfinity ? topBinade() | (1ull << (mantissaBits - 1))
                       : signBit() - 1;
  }
  uint64_t overflow() const { return hasInfinity ? topBinade() : nan(); }
};

constexpr Format bf16{8, 7, true};
constexpr Format f16{5, 10, true};
constexpr Format f8E4M3FN{4, 3, false};
constexpr Format f8E5M2{5, 2, true};

uint64_t encode(double value, const Format &format) {
  uint64_t sign = std::signbit(value) ? format.signBit() : 0;
  if (std::isnan(value))
    return sign | format.nan();
  if (std::isinf(value))
    return sign | format.overflow();
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, format.minExponent());
  // Exact: a power of two, and the result is below 2^(mantissaBits + 1).
  double scaled = std::ldexp(magnitude, format.mantissaBits - exponent);
  auto quotient = static_cast<uint64_t>(scaled);
  double rest = scaled - static_cast<double>(quotient);
  if (rest > 0.5 || (rest == 0.5 && (quotient & 1)))
    ++quotient;
  // The implicit bit of a normal quotient carries into the exponent field; so
  // does a mantissa that rounded up to the next power of two.
  uint64_t bits = (static_cast<uint64_t>(exponent - format.minExponent())
                   << format.mantissaBits) +
                  quotient;
  return sign | std::min(bits, format.overflow());
}

double decode(uint64_t bits, const Format &format) {
  bool negative = bits & format.signBit();
  uint64_t magnitude = bits & (format.signBit() - 1);
  double value = 0;
  if (format.hasInfinity && magnitude >= format.topBinade()) {
    value = magnitude == format.topBinade()
                ? std::numeric_limits<double>::infinity()
                : std::numeric_limits<double>::quiet_NaN();
  } else if (!format.hasInfinity && magnitude == format.nan()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    uint64_t mantissa = magnitude & ((1ull << format.mantissaBits) - 1);
    int field = static_cast<int>(magnitude >> format.mantissaBits);
    if (field > 0)
      mantissa |= 1ull << format.mantissaBits;
    int exponent = format.minExponent() + (field > 0 ? field - 1 : 0);
    value = std::ldexp(static_cast<double>(mantissa),
                       exponent - format.mantissaBits);
  }
  return negative ? -value : value;
}

} // namespace

uint16_t toBf16(double value) {
  return static_cast<uint16_t>(encode(value, bf16));
}
uint16_t toF16(double value) {
  return static_cast<uint16_t>(encode(value, f16));
}
uint8_t toF8E4M3FN(double value) {
  return static_cast<uint8_t>(encode(value, f8E4M3FN));
}
uint8_t toF8E5M2(double value) {
  return static_cast<uint8_t>(encode(value, f8E5M2));
}

double fromBf16(uint16_t bits) { return decode(bits, bf16); }
double fromF16(uint16_t bits) { return decode(bits, f16); }
double fromF8E4M3FN(uint8_t bits) { return decode(bits, f8E4M3FN); }
double fromF8E5M2(uint8_t bits) { return decode(bits, f8E5M2); }

int significandBits(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return 4;
  case ElementType::F8E5M2:
    return 3;
  case ElementType::F16:
    return 11;
  case ElementType::BF16:
    return 8;
  case ElementType::F32:
    return 24;
  case ElementType::F64:
    return 53;
  default:
    return 0;
  }
}

bool isFloat(ElementType type) { return significandBits(type) != 0; }

} // namespace mgpu
