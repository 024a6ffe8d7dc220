// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_PEAKTREE_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_PEAKTREE_H

#include "support/Assert.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace mgpu::planner::search {

/// An array that adds to a range and tells the largest of a range, both in
/// O(log n): a segment tree whose sums stay where they were added.
class PeakTree {
public:
  void assign(const std::vector<int64_t> &values) {
    leaves = std::bit_ceil(std::max<size_t>(values.size(), 1));
    largest.assign(leaves * 2, 0);
    added.assign(leaves * 2, 0);
    std::copy(values.begin(), values.end(), largest.begin() + long(leaves));
    for (size_t k = leaves; k-- > 1;)
      largest[k] = std::max(largest[2 * k], largest[2 * k + 1]);
  }
  /// Adds to [begin, end).
  void add(uint32_t begin, uint32_t end, int64_t value) {
    if (begin >= end)
      return;
    MGPU_ASSERT(end <= leaves, "a range lies within the array");
    size_t low = begin + leaves, high = end + leaves;
    for (; low < high; low /= 2, high /= 2) {
      if (low & 1)
        apply(low++, value);
      if (high & 1)
        apply(--high, value);
    }
    repair(begin + leaves);
    repair(end - 1 + leaves);
  }
  /// The largest of [begin, end); INT64_MIN of nothing.
  int64_t max(uint32_t begin, uint32_t end) const {
    int64_t left = INT64_MIN, right = INT64_MIN;
    if (begin >= end)
      return left;
    MGPU_ASSERT(end <= leaves, "a range lies within the array");
    // What was added above a node counts for it: going up, both sides take it.
    size_t low = begin + leaves, high = end - 1 + leaves;
    left = largest[low];
    right = largest[high];
    while (low / 2 != high / 2) {
      if (!(low & 1))
        left = std::max(left, largest[low + 1]);
      if (high & 1)
        right = std::max(right, largest[high - 1]);
      low /= 2;
      high /= 2;
      left += added[low];
      right += added[high];
    }
    int64_t result = std::max(left, right);
    for (low /= 2; low > 0; low /= 2)
      result += added[low];
    return result;
  }

private:
  void apply(size_t node, int64_t value) {
    largest[node] += value;
    added[node] += value;
  }
  void repair(size_t node) {
    for (node /= 2; node > 0; node /= 2)
      largest[node] =
          std::max(largest[2 * node], largest[2 * node + 1]) + added[node];
  }

  size_t leaves = 1;
  std::vector<int64_t> largest, added;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_PEAKTREE_H
