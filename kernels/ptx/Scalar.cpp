// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Scalar.h"

#include <array>

namespace mgpu::kernels::ptx {

namespace {

struct Row {
  std::string_view name;
  uint8_t bytes;
  char kind; ///< b, u, s or f; p of a predicate, v of a vector in one register
};

/// In the order of Scalar.
constexpr std::array<Row, 26> rows = {{
    {"pred", 1, 'p'},   {"b8", 1, 'b'},     {"u8", 1, 'u'},
    {"s8", 1, 's'},     {"b16", 2, 'b'},    {"u16", 2, 'u'},
    {"s16", 2, 's'},    {"f16", 2, 'f'},    {"bf16", 2, 'f'},
    {"e4m3x2", 2, 'v'}, {"e5m2x2", 2, 'v'}, {"b32", 4, 'b'},
    {"u32", 4, 'u'},    {"s32", 4, 's'},    {"f32", 4, 'f'},
    {"f16x2", 4, 'v'},  {"bf16x2", 4, 'v'}, {"tf32", 4, 'v'},
    {"u16x2", 4, 'v'},  {"s16x2", 4, 'v'},  {"b64", 8, 'b'},
    {"u64", 8, 'u'},    {"s64", 8, 's'},    {"f64", 8, 'f'},
    {"f32x2", 8, 'v'},  {"b128", 16, 'b'},
}};

} // namespace

uint32_t bytesOf(Scalar type) { return rows[size_t(type)].bytes; }
bool isFloat(Scalar type) { return rows[size_t(type)].kind == 'f'; }
bool isSigned(Scalar type) { return rows[size_t(type)].kind == 's'; }
std::string_view nameOf(Scalar type) { return rows[size_t(type)].name; }

std::optional<Scalar> scalarNamed(std::string_view word) {
  for (size_t k = 0; k < rows.size(); ++k)
    if (rows[k].name == word)
      return Scalar(k);
  return std::nullopt;
}

bool agrees(Scalar needed, Scalar type) {
  const Row &a = rows[size_t(needed)], &b = rows[size_t(type)];
  if ((a.kind == 'p') != (b.kind == 'p') || a.bytes != b.bytes)
    return false;
  auto isInteger = [](char kind) { return kind == 'u' || kind == 's'; };
  return !(a.kind == 'f' && isInteger(b.kind)) &&
         !(isInteger(a.kind) && b.kind == 'f') &&
         !(a.kind == 'f' && b.kind == 'f' && a.name != b.name);
}

} // namespace mgpu::kernels::ptx
