// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_STOREDNUMBERS_H
#define MGPU_TESTS_UNIT_CUDA_STOREDNUMBERS_H

// Elements in memory as numbers, by their type.

#include "support/Float.h"
#include "support/Types.h"

#include <cstddef>
#include <cstring>

namespace mgpu::fake {

/// The element at base[at], of a floating-point type.
inline double read(ElementType type, const std::byte *base, uint64_t at) {
  base += at * sizeBytes(type);
  uint16_t half;
  float single;
  double wide;
  if (type == ElementType::F64)
    return std::memcpy(&wide, base, 8), wide;
  if (type == ElementType::F32)
    return std::memcpy(&single, base, 4), double(single);
  std::memcpy(&half, base, 2);
  return type == ElementType::F16 ? fromF16(half) : fromBf16(half);
}

/// Writes the element at base[at], of a floating-point or integer type.
inline void write(ElementType type, std::byte *base, uint64_t at,
                  double value) {
  base += at * sizeBytes(type);
  auto single = float(value);
  const auto narrow = int32_t(value);
  const auto whole = int64_t(value);
  const uint16_t half = type == ElementType::F16 ? toF16(value) : toBf16(value);
  switch (sizeBytes(type)) {
  case 8:
    std::memcpy(base,
                type == ElementType::F64 ? static_cast<const void *>(&value)
                                         : &whole,
                8);
    break;
  case 4:
    std::memcpy(base,
                type == ElementType::F32 ? static_cast<const void *>(&single)
                                         : &narrow,
                4);
    break;
  default:
    std::memcpy(base, &half, 2);
  }
}

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_STOREDNUMBERS_H
