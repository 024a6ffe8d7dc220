// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TARGETPLAN_H
#define MGPU_PLANNER_SCHEDULE_TARGETPLAN_H

// Plans a DAG for a machine that is known by its topology: what `plan --target
// sim:NAME` and `bench-schedule --dag` call.

#include "planner/cost/Contention.h"
#include "planner/schedule/Schedulers.h"
#include "planner/schedule/overlap/OverlapPlanner.h"

#include <optional>

namespace mgpu::planner {

struct TargetOptions {
  uint64_t memoryBytes = UINT64_MAX; ///< of each device, resident ones included
  uint32_t streamsPerDevice = 4;
  uint64_t seed = 0;
  double scaleComm = 1; ///< of DAGs that are spmd: times the collectives
};

struct TargetPlan {
  Plan plan; ///< verified
  /// Of the plan, when work that shares a device slows other work down.
  double contendedUs = 0;
  /// The same of all nodes one after the other, where contention cannot be.
  double serialUs = 0;
  /// Of DAGs that are spmd: model, schedule and bounds.
  std::optional<overlap::OverlapModel> model;
  std::optional<overlap::OverlapOutcome> overlap;
};

/// "" is the memory of the topology's devices, "none" no limit.
Result<uint64_t> memoryLimit(const device::Topology &topology,
                             const std::string &memory);

/// Usage if the DAG has more devices than the machine. A DAG that is spmd goes
/// to the overlap search; others to list schedules of one to
/// `streamsPerDevice` streams and, until `budget` ends (a node is a plan), to
/// list schedules of disturbed priorities. Of those that fit the memory the one
/// of the least makespan with contention is kept: where running side by side
/// loses, the plan does not fork. What does not fit is Invalid, and the error
/// says at which step, what is live there and how much is missing.
Result<TargetPlan> planForTarget(const Dag &dag,
                                 const TopologyEstimator &machine,
                                 const TargetOptions &options,
                                 rcpsp::Budget &budget);

/// In words: makespans with contention, on what the durations rest (shares of
/// their sum that are measured, published, assumed), and every coefficient with
/// its origin.
std::string explainModel(const TargetPlan &plan, const Dag &dag,
                         const TopologyEstimator &machine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TARGETPLAN_H
