// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H
#define MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H

// The search that makePlan() is made of.

#include "planner/schedule/MakePlan.h"

namespace mgpu::planner {

/// A DAG as it is, not spmd, as far as `schedulePolicy` allows: list schedules
/// of one to PlanRequest::streamsPerDevice streams, searchPlans() and, where
/// work on the machine slows down what runs beside it, list schedules of
/// disturbed priorities and what joinForks() makes of the best. A node of the
/// budget is a plan. A request that isFixed() gets the scheduler's own plan.
/// Invalid where nothing fits the memory.
Result<TargetPlan> searchLists(const Dag &dag, const Machine &machine,
                               const PlanRequest &options,
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

/// The changes that `freedom` (one of them) made between two plans of one DAG:
/// the number of nodes, and lines for people. `without` is null where nothing
/// fits without it.
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
