// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/View.h"

#include <algorithm>
#include <cstdlib>

namespace mgpu::planner {

std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * shape[k];
  return strides;
}

View wholeView(BufferId buffer, std::span<const int64_t> shape) {
  return {buffer, 0, {shape.begin(), shape.end()}, rowMajorStrides(shape)};
}

View sliceOf(const View &view, size_t axis, int64_t index, int64_t count) {
  View slice = view;
  slice.sizes[axis] /= count;
  slice.offset += index * slice.sizes[axis] * slice.strides[axis];
  return slice;
}

View bySlices(const View &view, size_t axis, int64_t count) {
  if (axis == 0) // it has them so
    return view;
  View slices = sliceOf(view, axis, 0, count);
  slices.strides.insert(slices.strides.begin(),
                        slices.sizes[axis] * slices.strides[axis]);
  slices.sizes.insert(slices.sizes.begin(), count);
  return slices;
}

Box boxOf(const View &view, uint32_t elementBytes) {
  Box box;
  box.elementBytes = elementBytes;
  box.offset = view.offset * elementBytes;
  box.sizes = view.sizes;
  for (int64_t stride : view.strides)
    box.strides.push_back(stride * elementBytes);
  return box;
}

Distinct areDistinct(const View &view) {
  if (std::ranges::count(view.sizes, 0) > 0)
    return Distinct::Yes;
  std::vector<std::pair<int64_t, int64_t>> dims; // |stride|, size
  for (size_t k = 0; k < view.sizes.size(); ++k) {
    if (view.sizes[k] > 1 && view.strides[k] == 0)
      return Distinct::No;
    if (view.sizes[k] > 1)
      dims.emplace_back(std::abs(view.strides[k]), view.sizes[k]);
  }
  // They are distinct for certain where each stride passes all that smaller
  // ones reach.
  std::ranges::sort(dims);
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return Distinct::Unknown;
    if (__builtin_mul_overflow(stride, size - 1, &stride) ||
        __builtin_add_overflow(reach, stride, &reach))
      return Distinct::Yes; // no machine has such a buffer: refused at the end
  }
  return Distinct::Yes;
}

} // namespace mgpu::planner
