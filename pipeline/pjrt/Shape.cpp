// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Shape.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline::pjrt {

namespace {

struct TypeFacts {
  PJRT_Buffer_Type type;
  std::string_view name; ///< MLIR's
  size_t bytes;
};

constexpr TypeFacts types[] = {
    {PJRT_Buffer_Type_PRED, "i1", 1},
    {PJRT_Buffer_Type_S8, "i8", 1},
    {PJRT_Buffer_Type_S16, "i16", 2},
    {PJRT_Buffer_Type_S32, "i32", 4},
    {PJRT_Buffer_Type_S64, "i64", 8},
    {PJRT_Buffer_Type_U8, "ui8", 1},
    {PJRT_Buffer_Type_U16, "ui16", 2},
    {PJRT_Buffer_Type_U32, "ui32", 4},
    {PJRT_Buffer_Type_U64, "ui64", 8},
    {PJRT_Buffer_Type_F16, "f16", 2},
    {PJRT_Buffer_Type_F32, "f32", 4},
    {PJRT_Buffer_Type_F64, "f64", 8},
    {PJRT_Buffer_Type_BF16, "bf16", 2},
    {PJRT_Buffer_Type_F8E5M2, "f8E5M2", 1},
    {PJRT_Buffer_Type_F8E4M3FN, "f8E4M3FN", 1},
};

const TypeFacts *factsOf(PJRT_Buffer_Type type) {
  auto *at = std::ranges::find(types, type, &TypeFacts::type);
  return at == std::end(types) ? nullptr : at;
}

} // namespace

size_t bytesOf(PJRT_Buffer_Type type) {
  const TypeFacts *facts = factsOf(type);
  return facts ? facts->bytes : 0;
}

PJRT_Buffer_Type typeNamed(std::string_view name) {
  auto *at = std::ranges::find(types, name, &TypeFacts::name);
  return at == std::end(types) ? PJRT_Buffer_Type_INVALID : at->type;
}

Result<Shape> Shape::of(PJRT_Buffer_Type type, const int64_t *dims,
                        size_t rank) {
  constexpr size_t mostDims = 64;
  constexpr uint64_t most = uint64_t(1) << 46; // more than a process has
  if (bytesOf(type) == 0)
    return fail(ErrorKind::Unsupported,
                fmt::format("element type {} of PJRT: buffers have integers of "
                            "8 to 64 bits, i1, f16, bf16, f32, f64, f8E5M2 and "
                            "f8E4M3FN",
                            int(type)));
  if (rank > mostDims || (rank > 0 && !dims))
    return fail(ErrorKind::Usage,
                fmt::format("a shape of {} dimensions: it has {} at most", rank,
                            mostDims));
  uint64_t bytes = bytesOf(type);
  for (size_t k = 0; k < rank; ++k) {
    const uint64_t size = uint64_t(dims[k]);
    if (dims[k] < 0 || (size > 0 && bytes > most / size))
      return fail(ErrorKind::Usage,
                  fmt::format("size {} of dimension {} is negative, or more "
                              "than a memory holds",
                              dims[k], k));
    bytes *= size;
  }
  return Shape{type, {dims, dims + rank}};
}

size_t Shape::bytes() const {
  size_t bytes = bytesOf(type);
  for (const int64_t size : dims)
    bytes *= size_t(size);
  return bytes;
}

std::string Shape::text() const {
  const TypeFacts *facts = factsOf(type);
  return fmt::format("{}[{}]", facts ? facts->name : "?", fmt::join(dims, ","));
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

std::vector<int64_t> rowMajor(const Shape &shape) {
  std::vector<int64_t> strides(shape.dims.size());
  int64_t stride = int64_t(bytesOf(shape.type));
  for (size_t k = strides.size(); k-- > 0;) {
    strides[k] = stride;
    stride *= shape.dims[k];
  }
  return strides;
}

Result<std::vector<int64_t>> stridesOf(const PJRT_Buffer_MemoryLayout *layout,
                                       const Shape &shape) {
  const size_t rank = shape.dims.size();
  auto wrong = [&] {
    return fail(ErrorKind::Usage,
                fmt::format("the layout is not one of {}", shape.text()));
  };
  if (!layout)
    return rowMajor(shape);
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    const PJRT_Buffer_MemoryLayout_Strides &given = layout->strides;
    if (given.num_byte_strides != rank || (rank > 0 && !given.byte_strides))
      return wrong();
    return std::vector<int64_t>(given.byte_strides, given.byte_strides + rank);
  }
  const PJRT_Buffer_MemoryLayout_Tiled &tiled = layout->tiled;
  if (tiled.num_tiles > 0)
    return fail(ErrorKind::Unsupported,
                "the layout has tiles: buffers are row-major");
  if (tiled.minor_to_major_size != rank || (rank > 0 && !tiled.minor_to_major))
    return wrong();
  std::vector<int64_t> strides(rank, -1);
  int64_t stride = int64_t(bytesOf(shape.type));
  for (size_t k = 0; k < rank; ++k) {
    const int64_t dim = tiled.minor_to_major[k];
    if (dim < 0 || size_t(dim) >= rank || strides[size_t(dim)] >= 0)
      return wrong();
    strides[size_t(dim)] = stride;
    stride *= shape.dims[size_t(dim)];
  }
  return strides;
}

/// Copies dimension `dim` and those behind it.
static void copyFrom(size_t dim, std::byte *to,
                     const std::vector<int64_t> &toStrides,
                     const std::byte *from,
                     const std::vector<int64_t> &fromStrides,
                     const Shape &shape) {
  if (dim == shape.dims.size()) {
    std::memcpy(to, from, bytesOf(shape.type));
    return;
  }
  for (int64_t k = 0; k < shape.dims[dim]; ++k)
    copyFrom(dim + 1, to + k * toStrides[dim], toStrides,
             from + k * fromStrides[dim], fromStrides, shape);
}

void copyStrided(std::byte *to, const std::vector<int64_t> &toStrides,
                 const std::byte *from, const std::vector<int64_t> &fromStrides,
                 const Shape &shape) {
  const size_t bytes = shape.bytes();
  if (bytes == 0)
    return;
  const std::vector<int64_t> plain = rowMajor(shape);
  if (toStrides == plain && fromStrides == plain)
    std::memcpy(to, from, bytes);
  else
    copyFrom(0, to, toStrides, from, fromStrides, shape);
}

} // namespace mgpu::pipeline::pjrt
