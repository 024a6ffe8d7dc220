// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H
#define MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H

// What planForTarget() is made of.

#include "planner/schedule/TargetPlan.h"

namespace mgpu::planner {

/// A DAG as it is, not spmd: list schedules, those of disturbed priorities, and
/// what joinForks() makes of the best, as far as `schedulePolicy` allow.
/// Invalid where nothing fits the memory. A node of the budget is a plan.
Result<TargetPlan> searchLists(const Dag &dag, const TopologyEstimator &machine,
                               const TargetOptions &options,
                               SchedulePolicy schedulePolicy,
                               exact::Budget &budget);

/// Takes forks out of a verified plan, as long as that makes its makespan with
/// contention shorter: all of two classes of work, then single ones, what loses
/// most first. Steps, streams and buffers stay where they are; a step gets one
/// wait more for what it ran beside. The number of waits added.
uint32_t joinForks(Plan &plan, const Dag &dag, const Contention &contention);

/// Steps that run while another of their device's classes of work does, with
/// contention; by node.
std::vector<bool> runsBeside(const Plan &plan, const Dag &dag,
                             const Contention &contention);

/// What `freedom` (one of them) changed between two plans of one DAG: the
/// number of nodes, and lines for people. `without` is null where nothing fits
/// without it.
struct PolicyChange {
  uint32_t nodes = 0;
  std::vector<std::string> lines;
};
PolicyChange comparePolicy(TransformKind policyFlag, const Plan *without,
                           const Plan &with, const Dag &dag,
                           const Contention &contention);

/// For durations of nodes that TargetPlan::isScaled tells of.
inline constexpr const char *scaledWords =
    "the file's duration, scaled by the estimates of what it was and is "
    "(assumed)";

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H
