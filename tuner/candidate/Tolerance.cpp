// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/Tolerance.h"

#include "support/Array.h"

#include <algorithm>
#include <cmath>

namespace mgpu::tuner {

namespace {

struct FloatFormat {
  int precision, leastExponent; ///< normal numbers have them
};

FloatFormat formatOf(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return {4, -6};
  case ElementType::F8E5M2:
    return {3, -14};
  case ElementType::F16:
    return {11, -14};
  case ElementType::BF16:
    return {8, -126};
  case ElementType::F64:
    return {53, -1022};
  default:
    return {24, -126};
  }
}

} // namespace

bool isFloat(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::F32:
  case ElementType::F64:
    return true;
  default:
    return false;
  }
}

double ulpOf(ElementType type, double value) {
  const FloatFormat format = formatOf(type);
  int exponent = format.leastExponent;
  if (value != 0 && std::isfinite(value))
    exponent = std::max(exponent, std::ilogb(value));
  return std::ldexp(1, exponent - format.precision + 1);
}

void appendTolerances(ElementType type, std::span<const std::byte> exact,
                      std::span<const std::span<const std::byte>> trials,
                      std::span<const std::byte> reference, Tolerances &into) {
  auto arrayOf = [&](std::span<const std::byte> bytes) {
    return Array{type, {}, {bytes.begin(), bytes.end()}};
  };
  const Array middle = arrayOf(exact), known = arrayOf(reference);
  std::vector<Array> moved;
  for (std::span<const std::byte> trial : trials)
    moved.push_back(arrayOf(trial));
  const int64_t count = int64_t(exact.size() / sizeBytes(type));
  for (int64_t k = 0; k < count; ++k) {
    const double value = loadNumber(middle, k);
    double bound = 0;
    for (const Array &trial : moved) {
      const double off = std::abs(loadNumber(trial, k) - value);
      if (!(off <= bound) && !std::isnan(bound))
        bound = off; // NaN, too
    }
    if (bound > 0)
      bound += ulpOf(type, value);
    if (!std::isfinite(value) || !std::isfinite(bound) ||
        !(std::abs(loadNumber(known, k) - value) <= bound))
      bound = 0;
    into.exact.push_back(value);
    into.bound.push_back(bound);
  }
}

} // namespace mgpu::tuner
