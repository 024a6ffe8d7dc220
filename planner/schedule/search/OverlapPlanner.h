// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H

// From a DAG and a limit of memory to a verified plan: what `mgpu-tune plan
// --target sim:NAME` and `bench-schedule --dag` call.

#include "planner/plan/Plan.h"
#include "planner/plan/SchedulePolicy.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/search/OverlapModel.h"

namespace mgpu::planner::search {

/// Plan::model of what is planned by frozen durations alone.
inline constexpr std::string_view frozenModelName = "frozen model F";

struct OverlapOutcome {
  Plan plan; ///< with arena, bound and model line; verified
  OverlapSchedule schedule;
  OverlapBounds bounds;
  uint64_t peakBytes = 0;  ///< of the model, resident bytes included
  double firstSeconds = 0; ///< until the first verified plan
};

/// Searches until `budget` ends or the bound is met. Without
/// SchedulePolicy::order there is one schedule, inOrderSchedule(); `join` is
/// nothing to the model, which has no contention. Invalid when nothing fits
/// `memoryLimit` bytes: the error names the step, what is live there and how
/// much is missing, with a proof by a minimum cut where there is one.
Result<OverlapOutcome> planOverlap(const Dag &dag, const OverlapModel &model,
                                   uint64_t memoryLimit, uint64_t seed,
                                   rcpsp::Budget &budget,
                                   SchedulePolicy schedulePolicy = {});

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H
