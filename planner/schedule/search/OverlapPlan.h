// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLAN_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLAN_H

#include "planner/plan/Plan.h"
#include "planner/schedule/problem/Schedule.h"

namespace mgpu::planner::search {

/// The schedule of a frozen problem as a plan of `dag`: collectives on stream
/// 1, kernels on stream 0 and, where they run side by side, on others. Each
/// step waits for what the other streams have ended by its start, so that what
/// the schedule orders in time is ordered for good: every dependence, and every
/// two buffers of which one ends before the other begins, which may then share
/// bytes of the arena. That is laid out for `enough` bytes (layoutArena), or
/// left out where its buffers fit into them side by side. The bound and model
/// line are the caller's.
Plan asPlan(const Problem &problem, const Schedule &schedule, const Dag &dag,
            uint64_t enough = 0);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLAN_H
