// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/StridedCopy.h"

#include <cstring>
#include <fmt/format.h>
#include <new>

namespace mgpu::device {

namespace {

template <size_t Width>
void copyElements(std::byte *to, const std::byte *from, int64_t count,
                  int64_t toStride, int64_t fromStride) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStride, from + i * fromStride, Width);
}

void copyRows(std::byte *to, const std::byte *from, int64_t count,
              int64_t toStride, int64_t fromStride, int64_t bytes) {
  switch (bytes) {
  case 1:
    return copyElements<1>(to, from, count, toStride, fromStride);
  case 2:
    return copyElements<2>(to, from, count, toStride, fromStride);
  case 4:
    return copyElements<4>(to, from, count, toStride, fromStride);
  case 8:
    return copyElements<8>(to, from, count, toStride, fromStride);
  default:
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * toStride, from + i * fromStride, size_t(bytes));
  }
}

void copyNest(std::byte *to, const std::byte *from, const CopyNest::Dim *dims,
              size_t depth, int64_t rowBytes) {
  if (depth == 0) {
    std::memcpy(to, from, size_t(rowBytes));
    return;
  }
  if (depth == 1)
    return copyRows(to, from, dims->size, dims->destinationStride,
                    dims->sourceStride, rowBytes);
  for (int64_t i = 0; i < dims->size; ++i)
    copyNest(to + i * dims->destinationStride, from + i * dims->sourceStride,
             dims + 1, depth - 1, rowBytes);
}

void runNest(const CopyNest &nest) {
  if (nest.rowBytes > 0)
    copyNest(nest.destination, nest.source, nest.dims.data(), nest.dims.size(),
             nest.rowBytes);
}

} // namespace

Result<StridedCopy> StridedCopy::create(std::byte *destination,
                                        const Box &destinationBox,
                                        const std::byte *source,
                                        const Box &sourceBox) {
  MGPU_TRY(checkCopy(destination, destinationBox, source, sourceBox));
  StridedCopy copy;
  if (sourceBox.numElements() == 0)
    return copy;
  if (!overlaps(destination, destinationBox, source, sourceBox))
    if (auto nest = makeNest(destination, destinationBox, source, sourceBox)) {
      copy.first = std::move(*nest);
      return copy;
    }
  // By way of a packed buffer, which has a common refinement with any box.
  Box middle = packedBox(sourceBox);
  try {
    copy.staging.resize(size_t(middle.sizes[0]) * middle.elementBytes);
  } catch (const std::exception &) {
    return fail(ErrorKind::Absent,
                fmt::format("no memory for the {} bytes that a copy between "
                            "overlapping views needs",
                            middle.sizes[0] * middle.elementBytes));
  }
  copy.first = *makeNest(copy.staging.data(), middle, source, sourceBox);
  copy.second =
      *makeNest(destination, destinationBox, copy.staging.data(), middle);
  return copy;
}

void StridedCopy::run() {
  runNest(first);
  runNest(second);
}

} // namespace mgpu::device
