// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/NarrowFloat.h"

namespace mgpu::kernels::ptx {

uint64_t encode(double value, const FloatFormat &to, Round round,
                bool saturates) {
  const int mantissa = to.mantissaBits;
  const uint64_t sign = uint64_t(std::signbit(value))
                        << (to.exponentBits + mantissa);
  const uint64_t infinity = ((uint64_t(1) << to.exponentBits) - 1) << mantissa;
  const uint64_t ones = (uint64_t(1) << mantissa) - 1;
  const uint64_t largest =
      to.hasInfinity ? infinity - 1 : (infinity | ones) - 1;
  if (std::isnan(value)) // the canonical one: all ones, without a sign
    return infinity | ones;
  const double size = std::fabs(value);
  const bool isNegative = std::signbit(value);
  if (std::isinf(value))
    return sign | (saturates        ? largest
                   : to.hasInfinity ? infinity
                                    : infinity | ones);
  if (size == 0)
    return sign;
  const int bias = (1 << (to.exponentBits - 1)) - 1;
  int exponent = 0;
  std::frexp(size, &exponent); // size = f * 2^exponent, f in [1/2, 1)
  const int least = 1 - bias;
  const int of = exponent - 1 < least ? least : exponent - 1;
  // In units of the last place: exact, as the factor is a power of two.
  const double units = std::scalbn(size, mantissa - of);
  double whole = std::floor(units);
  const double rest = units - whole;
  const bool isOdd = std::fmod(whole, 2) != 0;
  const bool goesUp = round == Round::Nearest
                          ? rest > 0.5 || (rest == 0.5 && isOdd)
                      : round == Round::NearestAway ? rest >= 0.5
                      : round == Round::Zero        ? false
                      : round == Round::Up          ? rest > 0 && !isNegative
                                                    : rest > 0 && isNegative;
  whole += goesUp;
  // A carry out of the mantissa goes into the exponent by itself.
  const auto field = of + bias - 1;
  const uint64_t hidden = uint64_t(1) << mantissa;
  const auto bits = uint64_t(whole);
  uint64_t out = bits < hidden ? bits : (uint64_t(field) << mantissa) + bits;
  if (out > largest) {
    const bool staysFinite = round == Round::Zero ||
                             (round == Round::Up && isNegative) ||
                             (round == Round::Down && !isNegative);
    out = saturates || staysFinite ? largest
          : to.hasInfinity         ? infinity
                                   : infinity | ones;
  }
  return sign | out;
}

double decodeFloat(uint64_t bits, const FloatFormat &from) {
  const int mantissa = from.mantissaBits;
  const uint64_t ones = (uint64_t(1) << mantissa) - 1;
  const uint64_t fraction = bits & ones;
  const uint64_t field =
      bits >> mantissa & ((uint64_t(1) << from.exponentBits) - 1);
  const bool isNegative = bits >> (mantissa + from.exponentBits) & 1;
  const int bias = (1 << (from.exponentBits - 1)) - 1;
  const uint64_t last = (uint64_t(1) << from.exponentBits) - 1;
  double out;
  if (field == last && from.hasInfinity)
    out = fraction ? NAN : INFINITY;
  else if (field == last && fraction == ones)
    out = NAN;
  else if (field == 0)
    out = std::scalbn(double(fraction), 1 - bias - mantissa);
  else
    out =
        std::scalbn(double(fraction + ones + 1), int(field) - bias - mantissa);
  return isNegative ? -out : out;
}

/// `value` is rounded to nearest, and `rest` has the sign of what it lacks.
static double toOdd(double value, double rest) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (rest == 0 || std::isnan(rest) || !std::isfinite(value) || (bits & 1))
    return value;
  if (value == 0)
    return std::copysign(0x1p-1074, rest);
  // Away from zero where what is lacking has its sign.
  return std::bit_cast<double>((rest > 0) == (value > 0) ? bits + 1 : bits - 1);
}

double oddSum(double a, double b) {
  const double sum = a + b;
  const double bPart = sum - a, aPart = sum - bPart;
  return toOdd(sum, (a - aPart) + (b - bPart));
}

double oddFma(double a, double b, double c) {
  // A product of two floats is exact.
  return oddSum(a * b, c);
}

double oddQuotient(double a, double b) {
  const double quotient = a / b;
  if (!std::isfinite(quotient) || b == 0)
    return quotient;
  const double rest = std::fma(-quotient, b, a);
  return toOdd(quotient, b > 0 ? rest : -rest);
}

double oddRoot(double a) {
  const double root = std::sqrt(a);
  return toOdd(root, std::fma(-root, root, a));
}

} // namespace mgpu::kernels::ptx
