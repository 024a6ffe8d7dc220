// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_TOUCHEDSET_H
#define MGPU_PLANNER_RECORD_TOUCHEDSET_H

// The elements of a buffer that a launch touches, where a box would say too
// much: rows of a triangle, or every eighth thread's element.

#include "support/Types.h"

#include <compare>
#include <functional>
#include <vector>

namespace mgpu::planner {

/// The elements at constant + sum(coefficient * unknown), for all unknowns
/// within their sizes for which the conditions hold.
struct TouchedSet {
  /// Position of an unknown, coefficient.
  using Terms = std::vector<std::pair<uint32_t, int64_t>>;
  struct Condition {
    Terms terms;
    int64_t first = 0, last = 0; ///< their sum is from first to last
    auto operator<=>(const Condition &) const = default;
  };

  std::vector<int64_t> sizes; ///< each unknown is from 0 to size - 1
  Terms terms;                ///< bytes
  int64_t constant = 0;       ///< bytes, within the buffer
  uint32_t elementBytes = 1;
  std::vector<Condition> conditions;
  bool writes = false;
  bool isSure = true; ///< all of them are touched; else it may be fewer
  auto operator<=>(const TouchedSet &) const = default;
};

/// All that one use touches.
using TouchedSets = std::vector<TouchedSet>;

/// Whether two uses meet in an element that one of them writes.
using MeetSets =
    std::function<Overlap(const TouchedSets &, const TouchedSets &)>;

/// All elements of a box.
inline TouchedSet setOf(const Box &box, bool writes) {
  TouchedSet set;
  set.sizes = box.sizes;
  for (uint32_t k = 0; k < box.strides.size(); ++k)
    set.terms.push_back({k, box.strides[k]});
  set.constant = box.offset;
  set.elementBytes = box.elementBytes;
  set.writes = writes;
  return set;
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_TOUCHEDSET_H
