// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/CopyNest.h"

#include "support/Assert.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace mgpu::device {

Box collapse(const Box &box) {
  Box out{box.offset, {}, {}, box.elementBytes};
  for (size_t k = 0; k < box.sizes.size(); ++k) {
    int64_t size = box.sizes[k], stride = box.strides[k];
    if (size == 0)
      return {box.offset, {0}, {int64_t(box.elementBytes)}, box.elementBytes};
    if (size == 1)
      continue;
    if (!out.sizes.empty() && out.strides.back() == size * stride) {
      out.sizes.back() *= size;
      out.strides.back() = stride;
    } else {
      out.sizes.push_back(size);
      out.strides.push_back(stride);
    }
  }
  return out;
}

Result<Box> sliceBox(const Box &box, uint32_t index, uint32_t count) {
  MGPU_CHECK(count == 0 || index < count, "a slice is one of `count`");
  int64_t total = box.numElements();
  if (count == 0 || total % count != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("{} elements do not divide into {} equal slices",
                            total, count));
  Box slice = collapse(box);
  if (total == 0)
    return slice;
  int64_t parts = count, which = index;
  for (size_t k = 0; k < slice.sizes.size() && parts > 1; ++k) {
    int64_t &size = slice.sizes[k];
    if (size % parts == 0) {
      size /= parts;
      slice.offset += which * size * slice.strides[k];
      return slice;
    }
    if (parts % size != 0)
      return fail(ErrorKind::Unsupported,
                  fmt::format("slice {} of {} of a strided view is not itself "
                              "a strided view (dimension of size {}): make "
                              "the view contiguous",
                              index, count, size));
    parts /= size;
    slice.offset += which / parts * slice.strides[k];
    which %= parts;
    size = 1;
  }
  return slice;
}

/// Cuts two collapsed boxes into one common loop nest, from the innermost
/// dimension outwards; false when their shapes have no common refinement.
static bool refine(const Box &to, const Box &from,
                   std::vector<CopyNest::Dim> &dims) {
  size_t a = to.sizes.size(), b = from.sizes.size();
  int64_t sizeA = 1, sizeB = 1, strideA = 0, strideB = 0;
  while (true) {
    if (sizeA == 1 && a > 0)
      --a, sizeA = to.sizes[a], strideA = to.strides[a];
    if (sizeB == 1 && b > 0)
      --b, sizeB = from.sizes[b], strideB = from.strides[b];
    if (sizeA == 1 && sizeB == 1)
      break;
    int64_t step = std::min(sizeA, sizeB);
    if (step == 1 || sizeA % step || sizeB % step)
      return false;
    dims.push_back({step, strideA, strideB});
    sizeA /= step, sizeB /= step;
    strideA *= step, strideB *= step;
  }
  std::reverse(dims.begin(), dims.end());
  return true;
}

Result<void> checkCopy(const std::byte *destination, const Box &destinationBox,
                       const std::byte *source, const Box &sourceBox) {
  MGPU_TRY(checkBox(destinationBox));
  MGPU_TRY(checkBox(sourceBox));
  if (destinationBox.elementBytes != sourceBox.elementBytes ||
      destinationBox.numElements() != sourceBox.numElements())
    return fail(
        ErrorKind::Invalid,
        fmt::format("a copy from {} elements of {} bytes to {} of {}: both "
                    "ends must have the same number and width",
                    sourceBox.numElements(), sourceBox.elementBytes,
                    destinationBox.numElements(), destinationBox.elementBytes));
  if (sourceBox.numElements() != 0 && (!destination || !source))
    return fail(ErrorKind::Invalid,
                "a copy of some bytes has no address at one end");
  return {};
}

bool overlaps(const std::byte *a, const Box &boxA, const std::byte *b,
              const Box &boxB) {
  // Addresses are compared as numbers: the two may lie in unrelated
  // allocations.
  auto [lowA, highA] = boxA.byteRange();
  auto [lowB, highB] = boxB.byteRange();
  return uintptr_t(a) + uintptr_t(lowA) < uintptr_t(b) + uintptr_t(highB) &&
         uintptr_t(b) + uintptr_t(lowB) < uintptr_t(a) + uintptr_t(highA);
}

Box packedBox(const Box &like) {
  return {
      0, {like.numElements()}, {int64_t(like.elementBytes)}, like.elementBytes};
}

std::optional<CopyNest> makeNest(std::byte *destination,
                                 const Box &destinationBox,
                                 const std::byte *source,
                                 const Box &sourceBox) {
  MGPU_ASSERT(destinationBox.elementBytes == sourceBox.elementBytes &&
                  destinationBox.numElements() == sourceBox.numElements(),
              "checkCopy() lets boxes of one size and width through alone");
  CopyNest nest;
  if (destinationBox.numElements() == 0)
    return nest;
  Box to = collapse(destinationBox), from = collapse(sourceBox);
  if (!refine(to, from, nest.dims))
    return std::nullopt;
  nest.destination = destination + to.offset;
  nest.source = source + from.offset;
  nest.rowBytes = to.elementBytes;
  while (!nest.dims.empty() &&
         nest.dims.back().destinationStride == nest.rowBytes &&
         nest.dims.back().sourceStride == nest.rowBytes) {
    nest.rowBytes *= nest.dims.back().size;
    nest.dims.pop_back();
  }
  return nest;
}

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
