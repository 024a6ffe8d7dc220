// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_KEYORDER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_KEYORDER_H

#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// Orders the nodes of a problem by keys, the least first, so that each comes
/// after what it needs. An object keeps its scratch memory.
class KeyOrder {
public:
  explicit KeyOrder(const Problem &problem) : problem(problem) {}

  /// Raises keys that are below those of what the node needs, then orders. Keys
  /// are times from 0 to `longest`, seen in 2^33 steps; of equal keys what
  /// comes first in the problem goes first. O(nodes + edges): a radix sort.
  void order(std::vector<double> &keys, double longest, Direction direction,
             std::vector<uint32_t> &out);

private:
  const Problem &problem;
  std::vector<std::pair<uint64_t, uint32_t>> items, other;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_KEYORDER_H
