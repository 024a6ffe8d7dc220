// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_TYPES_H
#define MGPU_SUPPORT_TYPES_H

// The vocabulary every folder shares: devices, element types, launch
// dimensions, strided boxes and the kinds of collective.

#include "support/Result.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace mgpu {

/// A logical device of the program, 0..numDevices-1; -1 is the host.
struct DeviceId {
  int32_t value = -1;
  static constexpr DeviceId host() { return {-1}; }
  constexpr bool isHost() const { return value < 0; }
  auto operator<=>(const DeviceId &) const = default;
};

enum class ElementType : uint8_t {
  I1, ///< stored in one byte, 0 or 1
  I8,
  I16,
  I32,
  I64,
  Index, ///< 64 bits
  F8E4M3FN,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64,
};

/// Bytes of one element in memory.
uint32_t sizeBytes(ElementType type);
/// MLIR's spelling: "i1", "index", "f8E4M3FN", "bf16", ...
std::string_view toString(ElementType type);
std::optional<ElementType> parseElementType(std::string_view text);

/// Sizes of a grid or block; absent dimensions are 1.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t(x) * y * z; }
  auto operator<=>(const Dim3 &) const = default;
};

/// `count` blocks of a grid from `first` on, along each axis.
struct GridPart {
  Dim3 first{0, 0, 0}, count;
  static GridPart whole(Dim3 grid) { return {{0, 0, 0}, grid}; }
  /// Whether it lies within `grid`.
  bool fits(Dim3 grid) const {
    return uint64_t(first.x) + count.x <= grid.x &&
           uint64_t(first.y) + count.y <= grid.y &&
           uint64_t(first.z) + count.z <= grid.z;
  }
  bool operator==(const GridPart &) const = default;
};

/// A strided box of bytes inside one buffer: the elements at
/// offset + sum(i[k] * strides[k]), 0 <= i[k] < sizes[k], each `elementBytes`
/// wide. All figures but `sizes` are in bytes; strides may be 0 or negative.
struct Box {
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  uint32_t elementBytes = 1;

  int64_t numElements() const;
  /// First byte touched and one past the last; {offset, offset} when empty.
  std::pair<int64_t, int64_t> byteRange() const;
  /// Whether the elements follow each other without gaps, in row-major order.
  bool isContiguous() const;
  /// A contiguous box of `bytes` bytes.
  static Box flat(int64_t offset, int64_t bytes) {
    return {offset, {bytes}, {1}, 1};
  }
  bool operator==(const Box &) const = default;
};

/// Whether `box` is well-formed and addressable: as many sizes as strides, no
/// negative size, elements that exist, less than 2^62 bytes of elements and of
/// extent. The members above may overflow on a box for which this fails.
Result<void> checkBox(const Box &box);

/// Whether two boxes of the same buffer overlap, as far as that is known.
enum class Overlap { None, Maybe, Yes };
Overlap overlap(const Box &a, const Box &b);

enum class ReductionKind : uint8_t { Sum, Prod, Min, Max };
std::string_view toString(ReductionKind kind);

enum class CollectiveKind : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute,
  Broadcast,
  SendRecv, ///< member 0 sends, member 1 receives
};
std::string_view toString(CollectiveKind kind);

} // namespace mgpu

#endif // MGPU_SUPPORT_TYPES_H
