// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_SGS_H
#define MGPU_PLANNER_SCHEDULE_EXACT_SGS_H

// Schedule generation schemes (Kelley 1963; Kolisch 1996): an order in, a
// feasible schedule out. An object keeps the scratch memory of one problem, so
// that a metaheuristic makes a schedule in microseconds.

#include "planner/schedule/exact/ResourceProfile.h"

namespace mgpu::planner::exact {

/// Priority of each activity; the least goes first. Equal ones go in the order
/// of Problem::topological().
using Keys = std::vector<double>;

class ScheduleGenerator {
public:
  explicit ScheduleGenerator(const Problem &problem);

  /// Serial scheme: each activity of `list` in turn, as early as possible.
  /// `list` holds all activities, each after its predecessors. Gives active
  /// schedules; one of them is optimal. Returns the makespan.
  Time serial(const std::vector<uint32_t> &list, Starts &starts);

  /// Parallel scheme: at each time at which something ends, starts what fits in
  /// the order of the keys. Gives non-delay schedules, all of which may be
  /// worse than the best. Returns the makespan.
  Time parallel(const Keys &keys, Starts &starts);

  /// The activities in an order that keeps precedences and otherwise takes the
  /// least key first.
  void orderByKeys(const Keys &keys, std::vector<uint32_t> &list);

  /// The same order for keys that already keep the precedences, as starts do.
  void orderByStarts(const Starts &starts, std::vector<uint32_t> &list);

private:
  const Problem *problem;
  ResourceProfile profile;
  std::vector<uint32_t> rank; ///< place in topological()
  std::vector<uint32_t> missing, ready, counts;
  std::vector<Time> earliest;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_SGS_H
