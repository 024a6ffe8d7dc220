// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWREPAIR_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWREPAIR_H

#include "planner/schedule/exact/DisjunctiveSearch.h"
#include "support/Random.h"

namespace mgpu::planner::search {

/// Large-neighbourhood search with the exact search as repair: the nodes of a
/// few successive starts get the best order there is, while all others keep
/// theirs. Every longest chain of a schedule crosses every moment, so an order
/// that is shorter within one window makes the whole shorter, unless a chain
/// passes beside it. It takes problems of unit streams alone.
class WindowRepair {
public:
  WindowRepair(const Problem &problem, uint64_t seed)
      : problem(problem), random(seed) {}

  /// Tries one window of `schedule`. True: the nodes in the order of `keys` are
  /// shorter. Spends a node of the budget for each branch.
  bool improve(const Schedule &schedule, std::vector<double> &keys,
               exact::Budget &budget);

private:
  void look(const Schedule &schedule);
  template <typename Value>
  std::vector<double> nearest(const std::vector<bool> &wanted, int64_t at,
                              int step, Value value) const;
  DisjunctiveSearch::Around aroundOf(std::span<const uint32_t> window,
                                     uint32_t from, uint32_t end,
                                     const Schedule &schedule) const;
  Result<Problem> partOf(std::span<const uint32_t> window) const;

  const Problem &problem;
  Random random;
  std::vector<double> seen;     ///< the starts that the rest is of
  std::vector<uint32_t> order;  ///< by start
  std::vector<uint32_t> places; ///< by node: its place in the order
  std::vector<double> tails;    ///< by node
  std::vector<uint32_t> last;   ///< scratch: by resource
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWREPAIR_H
