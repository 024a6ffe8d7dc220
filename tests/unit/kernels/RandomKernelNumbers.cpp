// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernelNumbers.h"

#include <algorithm>
#include <bit>

namespace mgpu::kernels::random {

static uint64_t withoutSign(Kind kind, uint64_t bits) {
  return bitsOf(kind) == 64 ? bits : bits & ((1ull << bitsOf(kind)) - 1);
}

uint64_t kept(Kind kind, uint64_t bits) {
  if (kind == F32 || kind == Bool)
    return withoutSign(kind, bits);
  const unsigned above = 64 - bitsOf(kind);
  return uint64_t(int64_t(bits << above) >> above);
}

static uint64_t floatOf(const std::string &name, uint64_t x, uint64_t y) {
  const float a = std::bit_cast<float>(uint32_t(x)),
              b = std::bit_cast<float>(uint32_t(y));
  volatile float result = name == "addf"   ? a + b
                          : name == "subf" ? a - b
                                           : a * b;
  return std::bit_cast<uint32_t>(float(result));
}

/// A division by `y`, which is positive.
static uint64_t quotientOf(const std::string &name, Kind kind, uint64_t x,
                           uint64_t y) {
  const int64_t a = int64_t(x), b = int64_t(y);
  const uint64_t u = withoutSign(kind, x);
  return name == "divsi"        ? uint64_t(a / b)
         : name == "remsi"      ? uint64_t(a % b)
         : name == "floordivsi" ? uint64_t(a / b - (a % b < 0))
         : name == "ceildivsi"  ? uint64_t(a / b + (a % b > 0))
         : name == "divui"      ? u / y
         : name == "remui"      ? u % y
                                : u / y + (u % y != 0); // ceildivui
}

uint64_t arithOf(const std::string &name, Kind kind, uint64_t x, uint64_t y) {
  if (kind == F32)
    return floatOf(name, x, y);
  if (name == "addi")
    return x + y;
  if (name == "subi")
    return x - y;
  if (name == "muli")
    return x * y;
  if (name == "andi")
    return x & y;
  if (name == "ori")
    return x | y;
  if (name == "xori")
    return x ^ y;
  if (name == "maxsi")
    return uint64_t(std::max(int64_t(x), int64_t(y)));
  if (name == "minui")
    return std::min(x, y); // sign extension keeps the unsigned order
  if (name == "shli")
    return x << y;
  if (name == "shrui")
    return withoutSign(kind, x) >> y;
  if (name == "shrsi")
    return uint64_t(int64_t(x) >> y);
  return quotientOf(name, kind, x, y);
}

bool holds(const std::string &predicate, uint64_t x, uint64_t y) {
  const int64_t a = int64_t(x), b = int64_t(y);
  return predicate == "slt"   ? a < b
         : predicate == "sle" ? a <= b
         : predicate == "sgt" ? a > b
         : predicate == "uge" ? x >= y
         : predicate == "ult" ? x < y
         : predicate == "ugt" ? x > y
         : predicate == "eq"  ? x == y
                              : x != y;
}

uint64_t castOf(const std::string &name, Kind from, uint64_t x) {
  if (name == "extui" || name == "index_castui" || name == "trunci")
    return withoutSign(from, x);
  return from == Bool ? -x : x;
}

} // namespace mgpu::kernels::random
