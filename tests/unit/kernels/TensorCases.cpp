// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TensorCases.h"

#include "KernelRunner.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::kernels {

Dim3 gridOf(const TensorCase &test) {
  auto blocks = [](int64_t extent, uint32_t threads) {
    return uint32_t((extent + threads - 1) / threads);
  };
  return {blocks(test.n, sourceBlock.x), blocks(test.m, sourceBlock.y),
          uint32_t(test.batch)};
}

std::string textOf(const TensorCase &test, const std::string &columnStride) {
  bool isBatch = test.batch > 1, isWide = std::string(test.sum) == "f32";
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
              b = typeOf(test.k, test.n, test.type, ""),
              c = typeOf(test.m, test.n, test.sum, "");
  std::string z = isBatch ? "%z, " : "";
  std::string extended =
      isWide ? fmt::format("%xs = arith.extf %x : {0} to f32\n"
                           "%ys = arith.extf %y : {0} to f32\n"
                           "%p = arith.mulf %xs, %ys : f32\n",
                           test.type)
             : fmt::format("%p = arith.mulf %x, %y : {}\n", test.type);
  return fmt::format(
      R"(func.func @entry(%c: {2}, %a: {0}, %b: {1}) attributes {{mgpu.matmul = array<i64: 1, 2, 0>}} {{
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
    %old = memref.load %c[{6}%row, %column] : {2}
    %new = scf.for %at = %c0 to %k step %c1 iter_args(%sum = %old) -> ({7}) {{
      %x = memref.load %a[{6}%row, %at] : {0}
      %y = memref.load %b[{6}%at, %column] : {1}
      {8}
      %s = arith.addf %sum, %p : {7}
      scf.yield %s : {7}
    }}
    memref.store %new, %c[{6}%row, %column] : {2}
  }}
  return
}}
)",
      a, b, c, test.m, test.n, test.k, z, test.sum, extended);
}

/// An element of `type` as bytes; `x` is exact in it.
static void put(std::byte *at, const std::string &type, float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (type == "f32") {
    std::memcpy(at, &x, 4);
  } else if (type == "bf16") {
    uint16_t upper = uint16_t(bits >> 16);
    std::memcpy(at, &upper, 2);
  } else {
    _Float16 half = _Float16(x);
    std::memcpy(at, &half, 2);
  }
}

std::vector<std::byte> valuesOf(size_t count, const std::string &type,
                                bool isExact, uint32_t seed) {
  std::vector<float> values = randomFloats(count, seed);
  size_t width = type == "f32" ? 4 : 2;
  // One more element, so that a test may begin at an odd place.
  std::vector<std::byte> bytes((count + 1) * width);
  for (size_t k = 0; k < count; ++k) {
    float x = values[k];
    if (isExact)
      x = x < 0 ? -1 : 1;
    else if (type == "bf16")
      x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
    put(&bytes[k * width], type, x == 0 ? 1 : x);
  }
  return bytes;
}

} // namespace mgpu::kernels
