// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_SHAPE_H
#define MGPU_PIPELINE_PJRT_SHAPE_H

// Types, sizes and strides of tensors. In memory a tensor is row-major.

#include "pipeline/pjrt/Abi.h"
#include "support/Result.h"

#include <string>
#include <vector>

namespace mgpu::pipeline::pjrt {

struct Shape {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;

  /// Errors: Unsupported for a type that mgpu does not compute with, Usage for
  /// sizes that no memory has.
  static Result<Shape> of(PJRT_Buffer_Type type, const int64_t *dims,
                          size_t rank);
  size_t bytes() const;
  std::string text() const; ///< "f32[4,2]"
  bool operator==(const Shape &) const = default;
};

/// The bytes of an element; 0 for a type that mgpu does not compute with.
size_t bytesOf(PJRT_Buffer_Type type);
/// MLIR's name of an element type ("f32", "ui8"); INVALID where there is none.
PJRT_Buffer_Type typeNamed(std::string_view name);

/// The strides in bytes of a layout; those of a row-major tensor where it is
/// null. Errors: Unsupported for tiles.
Result<std::vector<int64_t>> stridesOf(const PJRT_Buffer_MemoryLayout *layout,
                                       const Shape &shape);
std::vector<int64_t> rowMajor(const Shape &shape);

/// Copies a tensor from memory with one kind of strides to one with another.
void copyStrided(std::byte *to, const std::vector<int64_t> &toStrides,
                 const std::byte *from, const std::vector<int64_t> &fromStrides,
                 const Shape &shape);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_SHAPE_H
