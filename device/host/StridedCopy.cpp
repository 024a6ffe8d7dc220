// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/StridedCopy.h"

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

namespace {

/// Cuts two collapsed boxes into one common loop nest, from the innermost
/// dimension outwards; false when their shapes have no common refinement.
template <typename Dim>
bool refine(const Box &to, const Box &from, std::vector<Dim> &dims) {
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

template <typename Dim>
void copyNest(std::byte *to, const std::byte *from, const Dim *dims,
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

/// Addresses a box touches, as numbers: the two may lie in unrelated
/// allocations.
std::pair<uintptr_t, uintptr_t> addresses(const std::byte *base,
                                          const Box &box) {
  auto [low, high] = box.byteRange();
  return {uintptr_t(base) + uintptr_t(low), uintptr_t(base) + uintptr_t(high)};
}

Box packed(const Box &like) {
  return {
      0, {like.numElements()}, {int64_t(like.elementBytes)}, like.elementBytes};
}

} // namespace

void StridedCopy::Pass::run() const {
  if (!empty)
    copyNest(destination, source, dims.data(), dims.size(), rowBytes);
}

StridedCopy::Pass StridedCopy::makePass(std::byte *destination,
                                        const Box &destinationBox,
                                        const std::byte *source,
                                        const Box &sourceBox) {
  Pass pass;
  pass.empty = destinationBox.numElements() == 0;
  if (pass.empty)
    return pass;
  Box to = collapse(destinationBox), from = collapse(sourceBox);
  if (!refine(to, from, pass.dims)) {
    pass.dims.clear();
    return pass;
  }
  pass.destination = destination + to.offset;
  pass.source = source + from.offset;
  pass.rowBytes = to.elementBytes;
  while (!pass.dims.empty() &&
         pass.dims.back().destinationStride == pass.rowBytes &&
         pass.dims.back().sourceStride == pass.rowBytes) {
    pass.rowBytes *= pass.dims.back().size;
    pass.dims.pop_back();
  }
  return pass;
}

Result<StridedCopy> StridedCopy::create(std::byte *destination,
                                        const Box &destinationBox,
                                        const std::byte *source,
                                        const Box &sourceBox) {
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
  StridedCopy copy;
  if (sourceBox.numElements() == 0) {
    copy.first.empty = copy.second.empty = true;
    return copy;
  }
  if (!destination || !source)
    return fail(ErrorKind::Invalid,
                "a copy of some bytes has no address at one end");
  auto [toLow, toHigh] = addresses(destination, destinationBox);
  auto [fromLow, fromHigh] = addresses(source, sourceBox);
  bool overlaps = toLow < fromHigh && fromLow < toHigh;
  if (!overlaps) {
    copy.first = makePass(destination, destinationBox, source, sourceBox);
    copy.second.empty = true;
    if (copy.first.destination)
      return copy;
  }
  // By way of a packed buffer, which has a common refinement with any box.
  Box middle = packed(sourceBox);
  try {
    copy.staging.resize(size_t(middle.sizes[0]) * middle.elementBytes);
  } catch (const std::exception &) {
    return fail(ErrorKind::Absent,
                fmt::format("no memory for the {} bytes that a copy between "
                            "overlapping views needs",
                            middle.sizes[0] * middle.elementBytes));
  }
  copy.first = makePass(copy.staging.data(), middle, source, sourceBox);
  copy.second =
      makePass(destination, destinationBox, copy.staging.data(), middle);
  return copy;
}

void StridedCopy::run() {
  first.run();
  second.run();
}

} // namespace mgpu::device
