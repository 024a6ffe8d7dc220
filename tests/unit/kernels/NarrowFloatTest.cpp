// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions of f8, f16 and bf16, against a reference that compares distances
// in place of shifting bits.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace mgpu::kernels {
namespace {

struct Format {
  const char *name;
  int exponent, mantissa;
  bool hasInfinity;
};
const Format e4m3{"f8E4M3FN", 4, 3, false}, e5m2{"f8E5M2", 5, 2, true};

/// The value of a pattern, from the definition of the format.
double valueOf(const Format &format, int bits) {
  int magnitude = bits & 0x7f, exponent = magnitude >> format.mantissa;
  int fraction = magnitude & ((1 << format.mantissa) - 1);
  double sign = bits & 0x80 ? -1 : 1;
  int top = (1 << format.exponent) - 1, bias = top / 2;
  if (format.hasInfinity && exponent == top)
    return fraction ? std::nan("") : sign * INFINITY;
  if (!format.hasInfinity && magnitude == 0x7f)
    return std::nan("");
  double scaled = std::ldexp(fraction, -format.mantissa);
  return sign * (exponent == 0 ? std::ldexp(scaled, 1 - bias)
                               : std::ldexp(1 + scaled, exponent - bias));
}

/// The nearest pattern, an even one of two as near; searched among all.
int nearest(const Format &format, double value) {
  int sign = std::signbit(value) ? 0x80 : 0;
  double size = std::fabs(value);
  int nan = format.hasInfinity ? 0x7e : 0x7f;
  if (std::isnan(value))
    return sign | nan;
  int largest = format.hasInfinity ? 0x7b : 0x7e;
  // Above the middle between the largest and what would follow it.
  double high = valueOf(format, largest);
  double middle = high + (high - valueOf(format, largest - 1)) / 2;
  bool largestIsEven = largest % 2 == 0;
  if (size > middle || (size == middle && !largestIsEven))
    return sign | (format.hasInfinity ? 0x7c : 0x7f);
  int best = 0;
  for (int bits = 1; bits <= largest; ++bits) {
    double now = std::fabs(valueOf(format, bits) - size);
    double before = std::fabs(valueOf(format, best) - size);
    if (now < before || (now == before && bits % 2 == 0))
      best = bits;
  }
  return sign | best;
}

/// Every value, the middle of every two, and what lies just beside either.
template <typename Float>
std::vector<Float> interesting(const Format &format) {
  std::vector<Float> result;
  auto addAround = [&](double value) {
    Float middle = Float(value);
    for (Float x : {middle, std::nextafter(middle, Float(INFINITY)),
                    std::nextafter(middle, -Float(INFINITY))}) {
      result.push_back(x);
      result.push_back(-x);
    }
  };
  int last = format.hasInfinity ? 0x7b : 0x7e;
  for (int bits = 0; bits <= last; ++bits) {
    double value = valueOf(format, bits);
    addAround(value);
    addAround((value + valueOf(format, bits == last ? bits : bits + 1)) / 2);
  }
  double high = valueOf(format, last);
  addAround(high + (high - valueOf(format, last - 1)) / 2);
  addAround(high * 4);
  using Limits = std::numeric_limits<Float>;
  for (Float x : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(),
                  Limits::min(), Limits::denorm_min()}) {
    result.push_back(x);
    result.push_back(-x);
  }
  while (result.size() % 64 != 0)
    result.push_back(0);
  return result;
}

std::string sized(size_t count, const std::string &type) {
  return "memref<" + std::to_string(count) + "x" + type + ">";
}

template <typename Float>
void testTruncation(const Format &format, const char *type, const char *cpu) {
  auto x = interesting<Float>(format);
  std::string from = sized(x.size(), type), to = sized(x.size(), format.name);
  auto kernel =
      load(module("%x: " + from + ", %y: " + to,
                  "%i = gpu.global_id x\n%a = memref.load %x[%i] : " + from +
                      "\n%b = arith.truncf %a : " + type + " to " +
                      format.name + "\nmemref.store %b, %y[%i] : " + to),
           {64}, cpu);
  ASSERT_TRUE(kernel);
  std::vector<uint8_t> y(x.size());
  kernel->run({uint32_t(x.size() / 64)}, {arg(x), arg(y)});
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(int(y[i]), nearest(format, double(x[i])))
        << format.name << " of " << x[i] << " in " << type << " on " << cpu;
}

TEST(NarrowFloat, TruncationToF8RoundsOnceToNearestEven) {
  for (const Format &format : {e4m3, e5m2}) {
    testTruncation<float>(format, "f32", "native");
    testTruncation<float>(format, "f32", "x86-64-v2");
    testTruncation<double>(format, "f64", "native");
  }
}

TEST(NarrowFloat, EveryF8ExtendsExactly) {
  for (const Format &format : {e4m3, e5m2})
    for (const char *cpu : {"native", "x86-64-v2"}) {
      std::string small = sized(256, format.name);
      auto kernel = load(
          module("%x: " + small +
                     ", %y: memref<256xf32>, %z: memref<256xf64>, "
                     "%w: memref<256xf16>",
                 "%i = gpu.global_id x\n%a = memref.load %x[%i] : " + small +
                     "\n%b = arith.extf %a : " + format.name +
                     " to f32\nmemref.store %b, %y[%i] : memref<256xf32>"
                     "\n%c = arith.extf %a : " +
                     format.name +
                     " to f64\nmemref.store %c, %z[%i] : memref<256xf64>"
                     "\n%d = arith.extf %a : " +
                     format.name +
                     " to f16\nmemref.store %d, %w[%i] : memref<256xf16>"),
          {128}, cpu);
      ASSERT_TRUE(kernel);
      std::vector<uint8_t> x(256);
      for (int bits = 0; bits < 256; ++bits)
        x[bits] = uint8_t(bits);
      std::vector<float> y(256);
      std::vector<double> z(256);
      std::vector<_Float16> w(256);
      kernel->run({2}, {arg(x), arg(y), arg(z), arg(w)});
      for (int bits = 0; bits < 256; ++bits) {
        double expected = valueOf(format, bits);
        for (double got : {double(y[bits]), z[bits], double(w[bits])}) {
          ASSERT_EQ(std::isnan(got), std::isnan(expected)) << bits;
          if (!std::isnan(expected)) {
            ASSERT_EQ(got, expected) << format.name << " " << bits;
            ASSERT_EQ(std::signbit(got), (bits & 0x80) != 0) << bits;
          }
        }
      }
    }
}

TEST(NarrowFloat, F8ArithmeticIsThatOfF32RoundedEachTime) {
  // All 65536 pairs; the sum and the product, with an f8 constant in between.
  for (const Format &format : {e4m3, e5m2}) {
    std::string type = format.name, all = sized(256, type),
                pairs = sized(65536, type);
    auto kernel =
        load(module("%x: " + all + ", %s: " + pairs + ", %p: " + pairs,
                    R"(
    %i = gpu.global_id x
    %c256 = arith.constant 256 : index
    %half = arith.constant 0.5 : )" +
                        type + R"(
    %j = arith.divui %i, %c256 : index
    %k = arith.remui %i, %c256 : index
    %a = memref.load %x[%j] : )" +
                        all + "\n%b = memref.load %x[%k] : " + all +
                        "\n%c = arith.mulf %a, %half : " + type +
                        "\n%d = arith.addf %c, %b : " + type +
                        "\n%e = arith.mulf %a, %b : " + type +
                        "\nmemref.store %d, %s[%i] : " + pairs +
                        "\nmemref.store %e, %p[%i] : " + pairs),
             {256}, "native");
    ASSERT_TRUE(kernel);
    std::vector<uint8_t> x(256), sums(65536), products(65536);
    for (int bits = 0; bits < 256; ++bits)
      x[bits] = uint8_t(bits);
    kernel->run({256}, {arg(x), arg(sums), arg(products)});
    auto isNan = [&](int bits) { return std::isnan(valueOf(format, bits)); };
    for (int i = 0; i < 65536; i += 7) { // coprime to 256: all values occur
      double a = valueOf(format, i / 256), b = valueOf(format, i % 256);
      int sum = nearest(format, valueOf(format, nearest(format, a * 0.5)) + b);
      int product = nearest(format, a * b);
      // The sign of a NaN that an operation makes is not defined.
      if (isNan(sum) ? !isNan(sums[i]) : sum != sums[i])
        FAIL() << type << ": " << a << " / 2 + " << b << " gave "
               << int(sums[i]) << ", not " << sum;
      if (isNan(product) ? !isNan(products[i]) : product != products[i])
        FAIL() << type << ": " << a << " * " << b << " gave "
               << int(products[i]) << ", not " << product;
    }
  }
}

TEST(NarrowFloat, HalfConvertsAlikeOnEveryLevel) {
  // _Float16 is the compiler's own conversion. Each f16, and f32 and f64
  // values around the middle of two.
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
    auto kernel = load(module("%x: memref<65536xf16>, %y: memref<65536xf32>, "
                              "%f: memref<65536xf32>, %h: memref<65536xf16>, "
                              "%d: memref<65536xf64>, %k: memref<65536xf16>",
                              R"(
    %i = gpu.global_id x
    %a = memref.load %x[%i] : memref<65536xf16>
    %b = arith.extf %a : f16 to f32
    memref.store %b, %y[%i] : memref<65536xf32>
    %c = memref.load %f[%i] : memref<65536xf32>
    %e = arith.truncf %c : f32 to f16
    memref.store %e, %h[%i] : memref<65536xf16>)"),
                       {256}, cpu);
    ASSERT_TRUE(kernel);
    std::vector<uint16_t> x(65536), h(65536), k(65536);
    std::vector<float> y(65536), f(65536);
    std::vector<double> d(65536);
    for (int i = 0; i < 65536; ++i) {
      x[i] = uint16_t(i);
      float low = float(std::bit_cast<_Float16>(uint16_t(i)));
      float high = float(std::bit_cast<_Float16>(uint16_t(i ^ 1)));
      f[i] = low + (high - low) / 2;
      if (i % 3 == 1)
        f[i] = std::nextafter(f[i], 0.0f);
    }
    kernel->run({256}, {arg(x), arg(y), arg(f), arg(h), arg(d), arg(k)});
    for (int i = 0; i < 65536; ++i) {
      float expected = float(std::bit_cast<_Float16>(x[i]));
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected)
          << cpu << " " << i;
      auto rounded = _Float16(f[i]);
      ASSERT_TRUE(std::isnan(f[i])
                      ? std::isnan(float(std::bit_cast<_Float16>(h[i])))
                      : std::bit_cast<uint16_t>(rounded) == h[i])
          << cpu << " " << f[i];
    }
  }
}

/// The bf16 nearest to an integer, an even one of two as near: 64 bits fit
/// x86's long double, and so do the distances.
uint16_t nearestBrain(long double value) {
  auto valueOf = [](uint32_t bits) {
    return (long double)std::bit_cast<float>(bits << 16);
  };
  const uint32_t sign = value < 0 ? 0x8000 : 0;
  const long double size = std::fabs(value);
  uint32_t low = 0;
  for (uint32_t step = 0x4000; step > 0; step /= 2)
    if (low + step < 0x7f80 && valueOf(low + step) <= size)
      low += step;
  const long double below = size - valueOf(low),
                    above = valueOf(low + 1) - size;
  const bool up = above < below || (above == below && low % 2 == 1);
  return uint16_t(sign | (up ? low + 1 : low));
}

template <typename Integer>
void testToBrain(const std::string &type, const std::string &op) {
  // What lies in the middle of two, and beside it by as little as can be: of
  // these a rounding to f32 in between makes middles.
  std::vector<Integer> x{0, 1, std::numeric_limits<Integer>::min(),
                         std::numeric_limits<Integer>::max()};
  const int digits = std::numeric_limits<Integer>::digits;
  for (int top = 0; top < digits; ++top)
    for (uint64_t fraction : {0u, 1u, 2u, 3u, 127u, 255u, 254u})
      for (int beside : {-1, 0, 1}) {
        uint64_t value = uint64_t(1) << top;
        value |= top >= 8 ? fraction << (top - 8) : 0;
        x.push_back(Integer(value + uint64_t(beside)));
        x.push_back(Integer(0 - (value + uint64_t(beside))));
      }
  x.resize((x.size() + 63) / 64 * 64);
  const std::string from = sized(x.size(), type), to = sized(x.size(), "bf16");
  auto kernel =
      load(module("%x: " + from + ", %y: " + to,
                  "%i = gpu.global_id x\n%a = memref.load %x[%i] : " + from +
                      "\n%b = arith." + op + " %a : " + type +
                      " to bf16\nmemref.store %b, %y[%i] : " + to),
           {64});
  ASSERT_TRUE(kernel);
  std::vector<uint16_t> y(x.size());
  kernel->run({uint32_t(x.size() / 64)}, {arg(x), arg(y)});
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], nearestBrain((long double)x[i])) << op << " " << x[i];
}

TEST(NarrowFloat, IntegersAreRoundedToBrainOnce) {
  testToBrain<int32_t>("i32", "sitofp");
  testToBrain<uint32_t>("i32", "uitofp");
  testToBrain<int64_t>("i64", "sitofp");
  testToBrain<uint64_t>("i64", "uitofp");
}

} // namespace
} // namespace mgpu::kernels
