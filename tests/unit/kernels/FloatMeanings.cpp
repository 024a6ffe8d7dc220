// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Meanings.h"

#include <bit>
#include <cmath>

namespace mgpu::kernels {

/// `zeros` of f32 combined by `operation`, as bits.
static Meaning ofZeros(const char *name, const std::string &operation,
                       float low, float high, float result) {
  auto literal = [](float value) {
    return std::signbit(value) ? "-0.0" : "0.0";
  };
  return {name,
          std::string("%a = arith.constant ") + literal(low) +
              " : f32\n"
              "%b = arith.constant " +
              literal(high) +
              " : f32\n"
              // From a value that no compiler knows.
              "%n = memref.load %x[%zero] : memref<256xi64>\n"
              "%f = arith.sitofp %n : i64 to f32\n"
              "%same = arith.cmpf oeq, %f, %f : f32\n"
              "%p = arith.select %same, %a, %f : f32\n"
              "%q = arith.select %same, %b, %f : f32\n"
              "%m = arith." +
              operation +
              " %p, %q : f32\n"
              "%bits = arith.bitcast %m : f32 to i32\n"
              "%w = arith.extui %bits : i32 to i64\n" +
              store("%w"),
          [result](const std::vector<int64_t> &, size_t) {
            return int64_t(std::bit_cast<uint32_t>(result));
          },
          ""};
}

/// A product that lies between two floats of 16 bits, and a sum that is a hair
/// off: rounded once. `ofVectors`: by vector.fma.
static Meaning roundedOnce(const char *name, const std::string &type,
                           bool ofVectors) {
  const bool isHalf = type == "f16";
  // Both exact, as is their product in a double; the hair is, too.
  auto factors = [isHalf](size_t i) -> std::pair<double, double> {
    return isHalf ? std::pair(double(i + 513), double(i % 60 + 1))
                  : std::pair(double(i % 128 + 128), 129.0);
  };
  const double hair = isHalf ? 0x1p-24 : 0x1p-20;
  std::string body = isHalf ? "%c513 = arith.constant 513 : index\n"
                              "%c60 = arith.constant 60 : index\n"
                              "%c1 = arith.constant 1 : index\n"
                              "%ai = arith.addi %i, %c513 : index\n"
                              "%rest = arith.remui %i, %c60 : index\n"
                              "%bi = arith.addi %rest, %c1 : index\n"
                              "%hair = arith.constant 0x0001 : f16\n"
                            : "%c128 = arith.constant 128 : index\n"
                              "%rest = arith.remui %i, %c128 : index\n"
                              "%ai = arith.addi %rest, %c128 : index\n"
                              "%bi = arith.constant 129 : index\n"
                              "%hair = arith.constant 0x3580 : bf16\n";
  body += "%two = arith.constant 2 : index\n"
          "%zero = arith.constant 0 : index\n"
          "%bit = arith.remui %i, %two : index\n"
          "%odd = arith.cmpi ne, %bit, %zero : index\n"
          "%a64 = arith.index_cast %ai : index to i64\n"
          "%b64 = arith.index_cast %bi : index to i64\n"
          "%a = arith.sitofp %a64 : i64 to T\n"
          "%b = arith.sitofp %b64 : i64 to T\n"
          "%less = arith.negf %hair : T\n"
          "%c = arith.select %odd, %less, %hair : T\n";
  body += ofVectors ? "%av = vector.broadcast %a : T to vector<2xT>\n"
                      "%bv = vector.broadcast %b : T to vector<2xT>\n"
                      "%cv = vector.broadcast %c : T to vector<2xT>\n"
                      "%rv = vector.fma %av, %bv, %cv : vector<2xT>\n"
                      "%r = vector.extract %rv[1] : T from vector<2xT>\n"
                    : "%r = math.fma %a, %b, %c : T\n";
  body += "%f = arith.extf %r : T to f32\n"
          "%w = arith.fptosi %f : f32 to i64\n";
  body += store("%w");
  for (size_t at; (at = body.find(" T")) != std::string::npos;)
    body.replace(at + 1, 1, type);
  for (size_t at; (at = body.find("xT>")) != std::string::npos;)
    body.replace(at + 1, 1, type);
  return {name, body,
          [=](const std::vector<int64_t> &, size_t i) {
            auto [a, b] = factors(i);
            const double exact = a * b + (i % 2 ? -hair : hair);
            int exponent;
            std::frexp(exact, &exponent);
            const double unit = std::ldexp(1, exponent - (isHalf ? 11 : 8));
            return int64_t(std::nearbyint(exact / unit) * unit);
          },
          ""};
}

std::vector<Meaning> floatMeanings() {
  const std::string zero = "%zero = arith.constant 0 : index\n";
  std::vector<Meaning> tests;
  for (Meaning each : {ofZeros("minimumf", "minimumf", -0.f, 0.f, -0.f),
                       ofZeros("minimumf_turned", "minimumf", 0.f, -0.f, -0.f),
                       ofZeros("maximumf", "maximumf", -0.f, 0.f, 0.f),
                       ofZeros("maximumf_turned", "maximumf", 0.f, -0.f, 0.f),
                       ofZeros("minnumf", "minnumf", 0.f, -0.f, -0.f),
                       ofZeros("maxnumf", "maxnumf", 0.f, -0.f, 0.f)}) {
    each.body = zero + each.body;
    tests.push_back(std::move(each));
  }
  for (bool ofVectors : {false, true}) {
    tests.push_back(roundedOnce("fused_f16", "f16", ofVectors));
    tests.push_back(roundedOnce("fused_bf16", "bf16", ofVectors));
  }
  return tests;
}

} // namespace mgpu::kernels
