// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ProductCases.h"

#include "KernelRunner.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ostream>

namespace mgpu::kernels {

void PrintTo(const ProductCase &test, std::ostream *out) { *out << test.name; }

Dim3 gridOf(const ProductCase &test) {
  auto blocks = [](int64_t extent, uint32_t threads) {
    return uint32_t((extent + threads - 1) / threads);
  };
  return {blocks(test.n, sourceBlock.x), blocks(test.m, sourceBlock.y),
          uint32_t(test.batch)};
}

/// The product as @entry says it: C is argument 0, A 1 and B 2.
static std::string productText(const ProductCase &test,
                               const std::string &columnStride) {
  auto matrix = [&](int argument, int64_t rows, int64_t columns,
                    int64_t rowStride, const std::string &column,
                    int64_t offset) {
    const std::string batch =
        test.batch > 1 ? fmt::format(", batch = {}, batchStride = {}",
                                     test.batch, rows * columns)
                       : "";
    return fmt::format("<argument = {}, rows = {}, columns = {}, rowStride = "
                       "{}, columnStride = {}{}{}>",
                       argument, rows, columns, rowStride, column, batch,
                       offset ? fmt::format(", offset = {}", offset) : "");
  };
  const int64_t m = test.m, n = test.n, k = test.k;
  std::string matrices =
      matrix(1, m, k, test.rowOfA(), columnStride, test.offset) + ", " +
      (test.isTurned ? matrix(2, k, n, 1, std::to_string(k), 0)
                     : matrix(2, k, n, n, "1", 0));
  if (!test.isFused)
    matrices += ", " + matrix(0, m, n, n, "1", 0);
  return fmt::format(
      "#mgpu.product<m = {}, n = {}, k = {}, a = {}, b = {}, c = {}{}{} : "
      "[{}]>",
      m, n, k, test.type, test.type, test.sum,
      test.batch > 1 ? fmt::format(", batch = {}", test.batch) : "",
      test.isTurned ? ", turned = true" : "", matrices);
}

std::string textOf(const ProductCase &test, const std::string &columnStride) {
  bool isBatch = test.batch > 1, isWide = std::string(test.sum) != test.type;
  auto typeOf = [&](int64_t rows, int64_t columns, const std::string &element,
                    const std::string &layout) {
    return fmt::format("memref<{}{}x{}x{}{}>",
                       isBatch ? fmt::format("{}x", test.batch) : "", rows,
                       columns, element, layout);
  };
  std::string strided;
  if (test.pad || test.offset || columnStride != "1")
    strided = fmt::format(", strided<[{}, {}], offset: {}>", test.rowOfA(),
                          columnStride, test.offset);
  std::string a = typeOf(test.m, test.k, test.type, strided),
              b = test.isTurned ? typeOf(test.n, test.k, test.type, "")
                                : typeOf(test.k, test.n, test.type, ""),
              c = typeOf(test.m, test.n, test.sum, "");
  std::string z = isBatch ? "%z, " : "";
  // In f32 and f64 a step is one operation.
  const bool isOne =
      std::string(test.sum) == "f32" || std::string(test.sum) == "f64";
  const std::string factors = isWide ? "%xs, %ys" : "%x, %y";
  std::string step =
      (isWide ? fmt::format("%xs = arith.extf %x : {0} to f32\n"
                            "%ys = arith.extf %y : {0} to f32\n",
                            test.type)
              : "") +
      (isOne ? fmt::format("%s = math.fma {}, %sum : {}\n", factors, test.sum)
             : fmt::format("%p = arith.mulf {0} : {1}\n"
                           "%s = arith.addf %sum, %p : {1}\n",
                           factors, test.sum));
  std::string before = fmt::format(
                  "%old = memref.load %c[{}%row, %column] : {}", z, c),
              after = fmt::format("memref.store %new, %c[{}%row, %column] : {}",
                                  z, c),
              arguments = fmt::format("%c: {}, %a: {}, %b: {}", c, a, b), mark;
  if (test.isFused) {
    std::string bias = fmt::format("memref<{}x{}>", test.n, test.sum);
    arguments += ", %bias: " + bias;
    mark = " {mgpu.mark = #mgpu.mark<product_loop>}";
    before = fmt::format("%one = arith.constant 1.0 : {2}\n"
                         "%was = memref.load %c[{0}%row, %column] : {1}\n"
                         "%old = arith.subf %was, %one : {2}\n"
                         "memref.store %old, %c[{0}%row, %column] : {1}",
                         z, c, test.sum);
    after = fmt::format("%zero = arith.constant 0.0 : {2}\n"
                        "%bv = memref.load %bias[%column] : {3}\n"
                        "%biased = arith.addf %new, %bv : {2}\n"
                        "%active = arith.maximumf %biased, %zero : {2}\n"
                        "%residual = memref.load %c[{0}%row, %column] : {1}\n"
                        "%out = arith.addf %active, %residual : {2}\n"
                        "memref.store %out, %c[{0}%row, %column] : {1}",
                        z, c, test.sum, bias);
  }
  return fmt::format(
      R"(func.func @entry({9}) attributes {{mgpu.product = {10}}} {{
  %z = gpu.global_id z
  %row = gpu.global_id y
  %column = gpu.global_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {3} : index
  %n = arith.constant {4} : index
  %k = arith.constant {5} : index
  %insideRows = arith.cmpi slt, %row, %m : index
  %insideColumns = arith.cmpi slt, %column, %n : index
  %inside = arith.andi %insideRows, %insideColumns : i1
  scf.if %inside {{
    {2}
    %new = scf.for %at = %c0 to %k step %c1 iter_args(%sum = %old) -> ({7}) {{
      %x = memref.load %a[{6}%row, %at] : {0}
      %y = memref.load %b[{6}{13}] : {1}
      {8}
      scf.yield %s : {7}
    }}{11}
    {12}
  }}
  return
}}
)",
      a, b, before, test.m, test.n, test.k, z, test.sum, step, arguments,
      productText(test, columnStride), mark, after,
      test.isTurned ? "%column, %at" : "%at, %column");
}

/// An element of `type` as bytes; `x` is exact in it.
static void put(std::byte *at, const std::string &type, float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (type == "f64") {
    double wide = x;
    std::memcpy(at, &wide, 8);
  } else if (type == "f32") {
    std::memcpy(at, &x, 4);
  } else if (type == "bf16") {
    uint16_t upper = uint16_t(bits >> 16);
    std::memcpy(at, &upper, 2);
  } else {
    _Float16 half = _Float16(x);
    std::memcpy(at, &half, 2);
  }
}

std::vector<std::byte> valuesOf(size_t count, const ProductCase &test,
                                const std::string &type, uint32_t seed,
                                bool isWhole) {
  const bool isPlain = std::string(test.sum) == test.type &&
                       (type == "f32" || type == "f64"),
             isExact = std::string(test.sum) != "f32" && !isPlain;
  std::vector<float> values = randomFloats(count, seed);
  size_t width = type == "f64" ? 8 : type == "f32" ? 4 : 2;
  // One more element, so that a test may begin at an odd place.
  std::vector<std::byte> bytes((count + 1) * width);
  for (size_t k = 0; k < count; ++k) {
    float x = values[k];
    if (isExact)
      x = x < 0 ? -1 : 1;
    else if (isWhole)
      x = std::trunc(x * 3);
    else if (type == "bf16")
      x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
    if (isPlain && k % 5 == 3)
      x = k % 2 ? -0.0f : 0.0f;
    else if (x == 0)
      x = 1;
    put(&bytes[k * width], type, x);
  }
  return bytes;
}

ProductMemory::ProductMemory(const ProductCase &test, bool isWhole)
    : test(test) {
  auto values = [&](int64_t count, const char *type, uint32_t seed) {
    return valuesOf(size_t(count), test, type, seed, isWhole);
  };
  a = values(test.offset + test.batch * test.m * test.rowOfA(), test.type, 1);
  b = values(test.batch * test.k * test.n, test.type, 2);
  initial = values(test.batch * test.m * test.n, test.sum, 3);
  bias = values(test.n, test.sum, 4);
}

std::vector<uint64_t> ProductMemory::arguments(std::vector<std::byte> &c,
                                               uint64_t first) const {
  std::vector<uint64_t> all{arg(c), first, uint64_t(uintptr_t(b.data()))};
  if (test.isFused)
    all.push_back(uint64_t(uintptr_t(bias.data())));
  return all;
}

std::vector<std::byte> ProductMemory::expected() const {
  std::vector<std::byte> c = initial;
  auto host = LoadedKernel::fromText(textOf(test), sourceBlock);
  EXPECT_TRUE(host) << test.name << ": " << host.error().message;
  (*host)->run(gridOf(test), arguments(c, uint64_t(uintptr_t(a.data()))));
  EXPECT_NE(c, initial);
  return c;
}

void checkBitsOfTheBody(const ProductCase &test, const CudaTwins &twins,
                        bool atOddPlaces) {
  ProductMemory memory(test);
  const std::vector<std::byte> expected = memory.expected();
  auto run = [&](const TwinConfig &config, uint64_t first) {
    auto got = memory.initial;
    twins.run(config.entry, gridOf(test), memory.arguments(got, first));
    EXPECT_TRUE(got == expected);
  };
  std::vector<std::byte> &a = memory.a;
  size_t ran = 0;
  for (const TwinConfig &config : twins.configs) {
    if (config.kernel.name != test.name)
      continue;
    ++ran;
    SCOPED_TRACE(config.entry + " " + kernels::toText(config.config));
    run(config, arg(a));
    if (!atOddPlaces)
      continue;
    const size_t bytes = a.size() - 2; // one element more than there is
    std::memmove(a.data() + 2, a.data(), bytes);
    run(config, arg(a) + 2);
    std::memmove(a.data(), a.data() + 2, bytes);
  }
  EXPECT_GT(ran, 0u);
}

} // namespace mgpu::kernels
