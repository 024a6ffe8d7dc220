// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H
#define MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H

// One free function per scheduling algorithm. All return a plan with streams,
// waits, predicted times and an arena. The bound is added by those who call
// them (planner/schedule/MakePlan.h).
//
// The planning model, to which all predicted times and the bound refer:
// - A device runs one kernel, one copy and one collective at a time; the three
//   overlap freely. So does the host. A node on several devices takes its
//   resource on all of them, from start to end.
// - A stream runs its steps in plan order, one at a time.
// - The phases (planner/dag/Dag.h) follow each other: none starts before the
//   one before has ended. A dependence across phases still gets its wait.
// - Durations do not depend on what else runs.
// Resources shape predicted times only; correctness rests on streams and waits.

#include "planner/cost/LatencyEstimator.h"
#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"
#include "planner/plan/Verify.h"

namespace mgpu::planner {

struct ScheduleOptions {
  PlanLimits limits;
  uint32_t streamsPerDevice = 4; ///< the list scheduler uses at most this many
  SchedulePolicy schedulePolicy; ///< the list scheduler's; it knows no `join`
};

/// Program order, one stream per device, each node after the one before it on
/// all devices. The baseline every other plan is compared with.
Result<Plan> scheduleSerial(const Dag &dag, const LatencyEstimator &latency,
                            const ScheduleOptions &options = {});

/// Priority list scheduling: longest path to the end first; the stream that
/// lets the node start first. Collectives of one communicator keep DAG order.
/// Without SchedulePolicy::order, program order: kernels, collectives and
/// copies on a stream each, as far as there are streams; collectives, where
/// they may be early, right behind the last node they need.
Result<Plan> scheduleList(const Dag &dag, const LatencyEstimator &latency,
                          const ScheduleOptions &options = {});

/// A random legal plan, for tests: any order and any stream the DAG allows.
Result<Plan> scheduleShuffled(const Dag &dag, const LatencyEstimator &latency,
                              uint64_t seed,
                              const ScheduleOptions &options = {});

/// Longest paths within each node's phase, the node itself left out.
struct Paths {
  std::vector<double> head; ///< to the node
  std::vector<double> tail; ///< from the node
};
Paths longestPaths(const Dag &dag, const std::vector<double> &durations);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H
