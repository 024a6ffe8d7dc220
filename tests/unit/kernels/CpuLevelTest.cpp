// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same kernels at every x86-64 level: they compile at each, and where this
// processor can run them, they give the same bits.
#include "KernelRunner.h"
#include "kernels/host/Functions64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace mgpu::kernels {
namespace {

/// Whether this processor runs code of a level.
bool runs(const std::string &cpu) {
  return cpu == "x86-64-v2"   ? __builtin_cpu_supports("x86-64-v2")
         : cpu == "x86-64-v3" ? __builtin_cpu_supports("x86-64-v3")
         : cpu == "x86-64-v4" ? __builtin_cpu_supports("x86-64-v4")
                              : true;
}

unsigned bytesOf(const std::string &type) {
  return type == "index" ? 8
                         : unsigned(std::stoi(
                               type.substr(type.find_first_of("0123456789")))) /
                               8;
}

/// 256 elements of `type` as bytes: `floats` rounded into it, or integers.
std::vector<uint8_t> inputs(const std::string &type, uint32_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<uint8_t> bytes(256 * 8);
  unsigned size = bytesOf(type);
  for (int i = 0; i < 256; ++i) {
    double value = std::ldexp(double(int64_t(engine()) >> 40), -20);
    uint64_t bits = engine() >> (engine() % 64);
    if (type == "f64")
      bits = std::bit_cast<uint64_t>(value);
    else if (type == "f32")
      bits = std::bit_cast<uint32_t>(float(value));
    else if (type == "f16")
      bits = std::bit_cast<uint16_t>(_Float16(value));
    else if (type == "bf16")
      bits = std::bit_cast<uint32_t>(float(value)) >> 16;
    else if (engine() % 2)
      bits = -bits;
    std::memcpy(&bytes[size_t(i) * size], &bits, size);
  }
  bytes.resize(256 * size_t(size));
  return bytes;
}

/// `body` computes from %a and %b of type `from`; the value %r0, which has the
/// first type of `to`, goes to the first output, %r1 to the second and so on.
std::string elementwise(const std::string &from,
                        const std::vector<std::string> &to,
                        const std::string &body) {
  std::string x = "memref<256x" + from + ">", outputs, stores;
  for (size_t k = 0; k < to.size(); ++k) {
    std::string number = std::to_string(k), o = "memref<256x" + to[k] + ">";
    outputs += ", %o" + number + ": " + o;
    stores += "\nmemref.store %r" + number + ", %o" + number + "[%i] : " + o;
  }
  return module("%x: " + x + ", %y: " + x + outputs,
                "%i = gpu.global_id x\n%a = memref.load %x[%i] : " + x +
                    "\n%b = memref.load %y[%i] : " + x + "\n" + body + stores);
}

void testLevels(const std::string &from, const std::vector<std::string> &to,
                const std::string &body) {
  std::vector<std::vector<uint8_t>> first;
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    auto kernel = load(elementwise(from, to, body), {64}, cpu);
    ASSERT_TRUE(kernel) << cpu;
    if (!runs(cpu))
      continue;
    auto x = inputs(from, 1), y = inputs(from, 2);
    std::vector<std::vector<uint8_t>> outputs;
    std::vector<uint64_t> arguments{arg(x), arg(y)};
    for (const std::string &type : to)
      outputs.emplace_back(256 * size_t(bytesOf(type)), 0xee);
    for (std::vector<uint8_t> &output : outputs)
      arguments.push_back(arg(output));
    kernel->run({4}, arguments);
    if (first.empty())
      first = outputs;
    for (size_t k = 0; k < to.size(); ++k)
      EXPECT_EQ(outputs[k], first[k])
          << from << " to " << to[k] << " differs on " << cpu << "\n"
          << body;
  }
}

/// `pattern` with each '$' replaced by `type`.
std::string with(std::string pattern, const std::string &type) {
  for (size_t at; (at = pattern.find('$')) != std::string::npos;)
    pattern.replace(at, 1, type);
  return pattern;
}

/// 256 floats: limits of the type and of functions, and any.
std::vector<float> anyFloats(uint32_t seed) {
  std::vector<float> values{0.f,   -0.f,   1.f,     -1.f,   INFINITY, -INFINITY,
                            NAN,   1e-45f, -1e-40f, 3e38f,  -3e38f,   0x1p20f,
                            88.7f, 89.f,   -87.4f,  -103.f, -104.f,   1048575.f,
                            0.5f,  -2.f,   3.f,     4.f,    10.f,     9.2f};
  std::mt19937 engine(seed);
  while (values.size() < 256)
    values.push_back(values.size() % 2
                         ? std::bit_cast<float>(uint32_t(engine()))
                         : std::ldexp(float(int32_t(engine())), -26));
  std::shuffle(values.begin(), values.end(), engine);
  return values;
}

TEST(CpuLevel, FunctionsHaveTheBitsOfTheirHeader) {
  struct Function {
    const char *name;
    float (*value)(float);
  };
  const Function all[] = {
      {"acos", functions::acos<float>},   {"acosh", functions::acosh<float>},
      {"asin", functions::asin<float>},   {"asinh", functions::asinh<float>},
      {"atan", functions::atan<float>},   {"atanh", functions::atanh<float>},
      {"cbrt", functions::cbrt<float>},   {"cos", functions::cos<float>},
      {"cosh", functions::cosh<float>},   {"erf", functions::erf<float>},
      {"erfc", functions::erfc<float>},   {"exp", functions::exp<float>},
      {"exp2", functions::exp2<float>},   {"expm1", functions::expm1<float>},
      {"log", functions::log<float>},     {"log10", functions::log10<float>},
      {"log1p", functions::log1p<float>}, {"log2", functions::log2<float>},
      {"sin", functions::sin<float>},     {"sinh", functions::sinh<float>},
      {"tan", functions::tan<float>},     {"tanh", functions::tanh<float>},
  };
  std::string body = "%r0 = math.atan2 %a, %b : f32\n"
                     "%r1 = math.powf %a, %b : f32\n";
  size_t next = 2;
  for (const Function &each : all)
    body +=
        "%r" + std::to_string(next++) + " = math." + each.name + " %a : f32\n";
  auto x = anyFloats(1), y = anyFloats(2);
  std::vector<std::vector<float>> expected(next, std::vector<float>(256));
  for (size_t i = 0; i < 256; ++i) {
    expected[0][i] = functions::atan2(x[i], y[i]);
    expected[1][i] = functions::powf(x[i], y[i]);
    for (size_t k = 2; k < next; ++k)
      expected[k][i] = all[k - 2].value(x[i]);
  }
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    auto kernel =
        load(elementwise("f32", std::vector<std::string>(next, "f32"), body),
             {64}, cpu);
    ASSERT_TRUE(kernel) << cpu;
    if (!runs(cpu))
      continue;
    std::vector<std::vector<float>> found(next, std::vector<float>(256));
    std::vector<uint64_t> arguments{arg(x), arg(y)};
    for (std::vector<float> &each : found)
      arguments.push_back(arg(each));
    kernel->run({4}, arguments);
    for (size_t k = 0; k < next; ++k)
      for (size_t i = 0; i < 256; ++i)
        if (!std::isnan(expected[k][i]) || !std::isnan(found[k][i]))
          EXPECT_EQ(std::bit_cast<uint32_t>(found[k][i]),
                    std::bit_cast<uint32_t>(expected[k][i]))
              << (k < 2 ? "of two " + std::to_string(k) : all[k - 2].name)
              << " of " << x[i] << " on " << cpu;
  }
}

TEST(CpuLevel, FunctionsOfF64HaveTheBitsOfTheirHeader) {
  struct Function {
    const char *name;
    double (*value)(double);
  };
  const Function all[] = {{"erf", functions::erf64<double>},
                          {"exp", functions::exp64<double>},
                          {"log", functions::log64<double>},
                          {"tanh", functions::tanh64<double>}};
  std::vector<double> x{0.,        -0.,  1.,     -1.,    HUGE_VAL, -HUGE_VAL,
                        NAN,       6.,   5e-324, 1e-310, 1.7e308,  709.78,
                        -745.1332, 710., -746.,  0.625,  22.,      -0x1p-30};
  std::mt19937_64 engine(1);
  while (x.size() < 256)
    x.push_back(x.size() % 2 ? std::bit_cast<double>(engine())
                             : std::ldexp(double(int64_t(engine())), -60));
  std::string body;
  for (size_t k = 0; k < std::size(all); ++k)
    body += "%r" + std::to_string(k) + " = math." + all[k].name + " %a : f64\n";
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    auto kernel =
        load(elementwise("f64", std::vector<std::string>(std::size(all), "f64"),
                         body),
             {64}, cpu);
    ASSERT_TRUE(kernel) << cpu;
    if (!runs(cpu))
      continue;
    std::vector<std::vector<double>> found(std::size(all),
                                           std::vector<double>(256));
    std::vector<uint64_t> arguments{arg(x), arg(x)};
    for (std::vector<double> &each : found)
      arguments.push_back(arg(each));
    kernel->run({4}, arguments);
    for (size_t k = 0; k < std::size(all); ++k)
      for (size_t i = 0; i < 256; ++i) {
        const double expected = all[k].value(x[i]);
        if (!std::isnan(expected) || !std::isnan(found[k][i]))
          EXPECT_EQ(std::bit_cast<uint64_t>(found[k][i]),
                    std::bit_cast<uint64_t>(expected))
              << all[k].name << " of " << x[i] << " on " << cpu;
      }
  }
}

TEST(CpuLevel, FloatArithmetic) {
  for (std::string type : {"f32", "f64", "f16", "bf16"})
    testLevels(type, {type},
               with(R"(
      %one = arith.constant 1.0 : $
      %p = arith.mulf %a, %b : $
      %s = arith.addf %p, %a : $
      %n = math.absf %b : $
      %d = arith.addf %n, %one : $
      %q = arith.divf %s, %d : $
      %w = math.sqrt %d : $
      %f = math.floor %q : $
      %c = math.ceil %s : $
      %t = math.trunc %p : $
      %e = math.roundeven %q : $
      %lo = arith.minimumf %f, %c : $
      %hi = arith.maximumf %t, %e : $
      %u = math.fma %w, %lo, %hi : $
      %g = arith.remf %u, %d : $
      %k = math.copysign %g, %b : $
      %m = arith.cmpf olt, %a, %b : $
      %z = arith.select %m, %k, %u : $
      %r0 = arith.subf %z, %q : $)",
                    type));
}

TEST(CpuLevel, IntegerArithmetic) {
  for (std::string type : {"i8", "i16", "i32", "i64", "index"})
    testLevels(type, {type},
               with(std::string(R"(
      %three = arith.constant 3 : $
      %p = arith.muli %a, %b : $
      %d = arith.ori %b, %three : $
      %q = arith.divui %p, %d : $
      %e = arith.remui %a, %d : $
      %h = arith.shrsi %a, %three : $
      %l = arith.shli %h, %three : $
      %m = arith.maxsi %l, %q : $
      %n = arith.minui %m, %e : $)") +
                        (type == "index" ? "%v = arith.addi %n, %a : $\n"
                                         : "%v = math.ctpop %n : $\n") +
                        "%r0 = arith.xori %v, %p : $",
                    type));
}

TEST(CpuLevel, ConversionsBetweenAllFloats) {
  const std::vector<std::string> types{"bf16", "f16", "f32", "f64"};
  for (const std::string &from : types) {
    std::vector<std::string> to;
    std::string body;
    for (const std::string &type : types)
      if (bytesOf(type) != bytesOf(from)) {
        body += "%r" + std::to_string(to.size()) + " = arith." +
                (bytesOf(from) < bytesOf(type) ? "extf" : "truncf") +
                " %a : " + from + " to " + type + "\n";
        to.push_back(type);
      }
    testLevels(from, to, body);
  }
}

TEST(CpuLevel, ConversionsFromIntegersToFloats) {
  std::vector<std::string> to;
  std::string body = "%i64 = arith.addi %a, %b : i64\n";
  for (std::string integer : {"i8", "i16", "i32", "i64"}) {
    if (integer != "i64")
      body += "%" + integer + " = arith.trunci %i64 : i64 to " + integer + "\n";
    for (std::string real : {"f16", "bf16", "f32", "f64"})
      for (std::string op : {"sitofp", "uitofp"}) {
        body += "%r" + std::to_string(to.size()) + " = arith." + op + " %" +
                integer + " : " + integer + " to " + real + "\n";
        to.push_back(real);
      }
  }
  testLevels("i64", to, body);
}

TEST(CpuLevel, ConversionsFromFloatsToIntegers) {
  // Into the smallest integer's range first: beyond it nothing is defined.
  for (std::string real : {"f16", "bf16", "f32", "f64"}) {
    std::vector<std::string> to;
    std::string body = with(R"(
      %m = arith.constant 0.0625 : $
      %c = arith.constant 100.0 : $
      %z = arith.constant 0.0 : $
      %n = arith.constant -100.0 : $
      %k = arith.mulf %a, %m : $
      %l = arith.minimumf %k, %c : $
      %s = arith.maximumf %l, %n : $
      %t = arith.maximumf %l, %z : $
)",
                            real);
    for (std::string integer : {"i8", "i16", "i32", "i64"}) {
      body += "%p" + integer + " = arith.fptosi %s : " + real + " to " +
              integer + "\n%q" + integer + " = arith.fptoui %t : " + real +
              " to " + integer + "\n%r" + std::to_string(to.size()) +
              " = arith.xori %p" + integer + ", %q" + integer + " : " +
              integer + "\n";
      to.push_back(integer);
    }
    testLevels(real, to, body);
  }
}

TEST(CpuLevel, SmallFmaRoundsOnce) {
  // a * b is halfway between two bf16, c far too small for f32 and for f64
  // beside it: it still decides where the sum goes.
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "native"}) {
    if (!runs(cpu))
      continue;
    auto kernel = load(elementwise("bf16", {"bf16"}, R"(
      %up = arith.constant 1.0e-30 : bf16
      %down = arith.constant -1.0e-30 : bf16
      %zero = arith.constant 0.0 : bf16
      %pos = arith.cmpf ogt, %b, %zero : bf16
      %c = arith.select %pos, %up, %down : bf16
      %f = arith.constant 1.5 : bf16
      %r0 = math.fma %a, %f, %c : bf16)"),
                       {64}, cpu);
    ASSERT_TRUE(kernel);
    // 1.5 * (1 + k / 128) has 9 bits where k is odd: halfway. Below 2 the last
    // bit of a bf16 is worth 1 / 128, above it twice as much.
    std::vector<uint16_t> a(256), b(256), out(256), expected(256);
    for (int i = 0; i < 256; ++i) {
      int k = i / 4 % 21 * 2 + 1; // the product stays below 2
      bool negative = i & 1, up = i & 2;
      a[i] = uint16_t(0x3f80 + k) | uint16_t(negative << 15);
      b[i] = up ? 0x3f80 : 0xbf80;
      int twice = 3 * (128 + k); // the size of the product, in 1 / 256
      bool grows = up != negative;
      expected[i] =
          uint16_t(0x3f80 + twice / 2 - 128 + grows) | uint16_t(negative << 15);
    }
    kernel->run({4}, {arg(a), arg(b), arg(out)});
    EXPECT_EQ(out, expected) << cpu;
  }
}

TEST(CpuLevel, DoubleRoundsOnceToHalf) {
  // 1 + 2^-11 is halfway between two f16; a trifle more must round up, which a
  // way through f32 would lose.
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    auto kernel =
        load(elementwise("f64", {"f16"}, "%r0 = arith.truncf %a : f64 to f16"),
             {64}, cpu);
    ASSERT_TRUE(kernel);
    if (!runs(cpu))
      continue;
    std::vector<double> x(256), y(256);
    for (int i = 0; i < 256; ++i)
      x[i] =
          std::ldexp(1 + std::ldexp(1, -11) + (i % 3 - 1) * std::ldexp(1, -45),
                     i / 4 - 32) *
          (i % 2 ? -1 : 1);
    std::vector<uint16_t> out(256);
    kernel->run({4}, {arg(x), arg(y), arg(out)});
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(out[i], std::bit_cast<uint16_t>(_Float16(x[i])))
          << cpu << " " << i << " " << x[i];
  }
}

TEST(CpuLevel, ReductionsVectorsAndShuffles) {
  for (std::string type : {"f32", "f64", "f16"})
    testLevels(type, {type},
               with(R"(
      %tile = memref.alloca() : memref<64x$, #gpu.address_space<workgroup>>
      %t = gpu.thread_id x
      %c63 = arith.constant 63 : index
      %one = arith.constant 3 : i32
      %w = arith.constant 32 : i32
      %sum = gpu.all_reduce add %a {} : ($) -> ($)
      %part = gpu.subgroup_reduce mul %b cluster(size = 8) : ($) -> $
      %s, %ok = gpu.shuffle xor %b, %one, %w : $
      memref.store %s, %tile[%t] : memref<64x$, #gpu.address_space<workgroup>>
      gpu.barrier
      %u = arith.subi %c63, %t : index
      %v = memref.load %tile[%u] : memref<64x$, #gpu.address_space<workgroup>>
      %vec = vector.from_elements %v, %part, %a, %b : vector<4x$>
      %sq = arith.mulf %vec, %vec : vector<4x$>
      %red = vector.reduction <add>, %sq : vector<4x$> into $
      %r0 = arith.addf %red, %sum : $)",
                    type));
}

} // namespace
} // namespace mgpu::kernels
