// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_ARRAY_H
#define MGPU_SUPPORT_ARRAY_H

// A dense array of host values, as read from a file or written to one.

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {

/// Row-major and little-endian: bytes.size() is the product of `shape` times
/// sizeBytes(elementType). An empty shape is one element.
struct Array {
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  bool operator==(const Array &) const = default;
};

/// Product of `shape` times the element size; an error on a negative size or
/// where the product passes 2^62. Zero-sized dimensions are fine.
Result<int64_t> arrayBytes(ElementType type, std::span<const int64_t> shape);

/// "4x8xf32"; "f32" for an empty shape; "?" for a negative (unknown) size.
std::string describe(ElementType type, std::span<const int64_t> shape);

/// Whether `shape` fits `expected`, in which a negative size is unknown.
bool shapeFits(std::span<const int64_t> shape,
               std::span<const int64_t> expected);

/// Stores `value` at `destination`. Floats round to nearest even; an integer
/// type takes only whole numbers in its range, i1 only 0 and 1: false if not.
bool storeNumber(double value, ElementType type, std::byte *destination);

/// The outcome of parsing a text as a number of a type.
enum class NumberText {
  Stored,
  Malformed,
  OutOfRange, ///< a number, but not one of the type's
};

/// Parses `text` straight into `type`, so that i64 keeps all its digits and f32
/// is rounded once: a decimal number; for floats also nan and inf; for i1 also
/// true and false. A number too small for a float is rounded to zero, one too
/// large is out of range. Nothing but Stored writes to `destination`.
NumberText parseNumber(std::string_view text, ElementType type,
                       std::byte *destination);

/// Whether parseNumber() stores it.
bool storeText(std::string_view text, ElementType type, std::byte *destination);

/// Why `text` was not stored, as the end of a sentence: "'two' is not a number
/// of type f32", "'1e400' is too large for f32".
std::string whyNotStored(NumberText outcome, std::string_view text,
                         ElementType type);

/// Element `index` as a double (i64 beyond 2^53 rounds).
double loadNumber(const Array &array, int64_t index);

} // namespace mgpu

#endif // MGPU_SUPPORT_ARRAY_H
