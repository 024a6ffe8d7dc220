// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_VIEW_H
#define MGPU_PLANNER_RECORD_VIEW_H

// A part of a buffer as a call names it.

#include "planner/dag/Dag.h"

#include <span>
#include <vector>

namespace mgpu::planner {

/// A strided view of a root buffer. The offset and the strides count elements
/// of the buffer's type.
struct View {
  BufferId buffer;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  bool operator==(const View &) const = default;
};

/// Row-major strides of a shape, in elements.
std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape);

/// The view of a whole buffer of that shape.
View wholeView(BufferId buffer, std::span<const int64_t> shape);

/// Slice `index` of `count` equal ones along an axis, whose size they divide.
View sliceOf(const View &view, size_t axis, int64_t index, int64_t count);

/// The view with its slices along an axis one after the other: in row-major
/// order all elements of the first slice come before those of the second.
View bySlices(const View &view, size_t axis, int64_t count);

/// The bytes of a view.
Box boxOf(const View &view, uint32_t elementBytes);

/// Whether no two elements of the view lie in one place.
enum class Distinct {
  Yes,
  No,      ///< a stride of a dimension with several elements is 0
  Unknown, ///< strides may or may not make elements meet
};
Distinct areDistinct(const View &view);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_VIEW_H
