// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H

#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/search/BaseOrders.h"
#include "planner/schedule/search/GuardedList.h"
#include "support/Random.h"

#include <functional>

namespace mgpu::planner::search {

/// Ever better schedules of one model within a limit of memory. The first
/// comes from the low-memory order and its plain urgency; then other orders
/// and rules; then feedback: a kernel that had to wait for a collective asks
/// for it sooner, and the schedule is made again (in the manner of Storer, Wu
/// and Vaccari's search in the space of problems, 1992). One seed, one
/// sequence.
class OverlapSearch {
public:
  /// Called with each schedule better than all before; it may refuse, as when
  /// no arena of the limit's size holds the schedule's buffers.
  using Accept = std::function<bool(const OverlapSchedule &)>;

  /// `limit` in bytes, resident ones included. If `keepsPlaces`, collectives
  /// stay behind the kernels before them in the program, and its order is the
  /// only base.
  OverlapSearch(const OverlapModel &model, uint64_t limit, uint64_t seed,
                Accept accept, bool keepsPlaces = false);
  OverlapSearch(const OverlapSearch &) = delete;

  /// The first schedule; false when the low-memory order does not fit the
  /// limit, or all that was made of it was refused: then what the schedules may
  /// take was lowered by a percent each time, for arenas have gaps.
  bool first();
  /// No schedule is shorter: the search ends where it is met. Until told, the
  /// sum of the kernels.
  void setBound(double microseconds) { bound = microseconds; }
  /// Tries on until the budget ends or the bound is met; a node is a schedule
  /// made. first() was true.
  void improve(rcpsp::Budget &budget);

  const OverlapSchedule &best() const { return bestSchedule; }
  /// Peak of the first base, the low-memory order unless collectives keep their
  /// places, run one node at a time.
  uint64_t leastPeak() const { return lowestPeak; }
  const std::vector<uint32_t> &lowMemory() const { return orders[0]; }

private:
  bool attempt(size_t order, const UrgencyRule &rule);
  void hurry(UrgencyRule &rule);

  const OverlapModel &model;
  uint64_t limit, lowestPeak = UINT64_MAX;
  const bool keepsPlaces;
  Accept accept;
  double bound = 0;
  Random rng;
  GuardedList list;
  std::vector<std::vector<uint32_t>> orders; ///< the low-memory one first
  OverlapSchedule trial, bestSchedule;
  size_t bestOrder = 0;
  UrgencyRule bestRule;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H
