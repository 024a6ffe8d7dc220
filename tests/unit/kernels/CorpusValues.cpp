// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Corpus.h"
#include "CorpusMaker.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace mgpu::kernels {

size_t bytesOf(const std::string &type) {
  return type == "i1" ? 1 : corpus::bitsOf(type) / 8;
}

/// The number nearest to `value` among those of 1 sign, `exponent` and
/// `mantissa` bits, as its bits.
static uint64_t smallBits(double value, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const uint64_t sign = std::signbit(value) ? 1 : 0;
  double size = std::fabs(value);
  if (size == 0)
    return sign << (exponent + mantissa);
  int power = std::max(std::ilogb(size), 1 - bias);
  uint64_t units = uint64_t(std::nearbyint(std::ldexp(size, mantissa - power)));
  // A carry into the exponent is the next power of two.
  uint64_t bits = units + (uint64_t(power + bias - 1) << mantissa);
  return sign << (exponent + mantissa) | bits;
}

static uint64_t bitsOfFloat(const std::string &type, double value) {
  if (type == "f64")
    return std::bit_cast<uint64_t>(value);
  if (type == "f32")
    return std::bit_cast<uint32_t>(float(value));
  if (type == "f16")
    return smallBits(value, 5, 10);
  if (type == "bf16")
    return smallBits(value, 8, 7);
  return type == "f8E5M2" ? smallBits(value, 5, 2) : smallBits(value, 4, 3);
}

std::vector<std::vector<std::byte>> CorpusKernel::fill(uint32_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::byte>> result;
  for (const CorpusBuffer &buffer : buffers) {
    const size_t width = bytesOf(buffer.type);
    std::vector<std::byte> bytes(buffer.count * width);
    for (size_t k = 0; k < buffer.count; ++k) {
      int64_t small = int64_t(random() % 7) + 1; // 1 to 7
      uint64_t bits = random();
      if (buffer.values == CorpusBuffer::Power)
        small = small <= 3 && bits % 2 ? -small : small;
      if (buffer.values == CorpusBuffer::Divisor && bits % 2 && small > 1)
        small = -small;
      const bool isSmall = buffer.values == CorpusBuffer::Positive ||
                           buffer.values == CorpusBuffer::Power ||
                           buffer.values == CorpusBuffer::Divisor;
      if (corpus::isFloat(buffer.type)) {
        double value = double(int64_t(bits % 63) - 31) / 4;
        if (isSmall)
          value = double(small) / 4;
        else if (buffer.values == CorpusBuffer::Rough)
          value = std::ldexp(double(bits >> 11), -50); // below 8
        // The narrowest types get every number there is.
        if (!isSmall && corpus::bitsOf(buffer.type) == 8)
          bits &= 255;
        else
          bits = bitsOfFloat(buffer.type, value);
      } else if (buffer.type == "i1") {
        bits &= 1;
      } else if (isSmall) {
        bits = uint64_t(small);
      } else if (k % 3 == 0) {
        bits = uint64_t(int64_t(bits % 15) - 7);
      }
      std::memcpy(&bytes[k * width], &bits, width);
    }
    result.push_back(std::move(bytes));
  }
  return result;
}

/// Whether the bits of a float are those of a NaN.
static bool isNan(const std::string &type, uint64_t bits) {
  auto above = [&](int exponent, int mantissa) {
    const uint64_t magnitude = bits & ((1ull << (exponent + mantissa)) - 1);
    return magnitude > ((1ull << exponent) - 1) << mantissa;
  };
  return type == "f64"      ? above(11, 52)
         : type == "f32"    ? above(8, 23)
         : type == "f16"    ? above(5, 10)
         : type == "bf16"   ? above(8, 7)
         : type == "f8E5M2" ? above(5, 2)
                            : type == "f8E4M3FN" && (bits & 127) == 127;
}

bool sameElement(const std::string &type, const std::byte *a,
                 const std::byte *b) {
  uint64_t x = 0, y = 0;
  std::memcpy(&x, a, bytesOf(type));
  std::memcpy(&y, b, bytesOf(type));
  return x == y || (isNan(type, x) && isNan(type, y));
}

} // namespace mgpu::kernels
