// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_PLANPROGRAM_H
#define MGPU_PIPELINE_RUN_PLANPROGRAM_H

// The step of `plan`: a plan for any target, in each order or with each
// annotation that is to be tried, and what is known of it beside.

#include "pipeline/build/Prepare.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/plan/ChooseShardings.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/PlanProof.h"

#include <optional>
#include <utility>

namespace mgpu::pipeline {

inline constexpr uint32_t noisePlays = 400; ///< simulated for --noise

struct PlanRequest {
  PrepareOptions prepare;
  std::vector<std::string> whatIf;
  uint64_t shardings = 0; ///< most annotations of the arguments to plan
  double noisePercent = 0;
};

/// The plan of the changed program on the changed machine.
struct ChangedPlan {
  planner::TargetPlan plan;
  size_t scaled = 0;               ///< durations of the file that were scaled
  std::vector<std::string> absent; ///< what the new plan was not made to have
};

/// A plan, and what is known of it beside.
struct PlanReport {
  planner::Plan plan;
  /// The machine it was planned for, and how it was found; none of a stored
  /// plan and of one that `tune` found.
  std::optional<planner::Machine> machine;
  std::optional<planner::TargetPlan> target;
  /// The time of a replay on the host's threads.
  std::optional<planner::HostPrediction> predicted;
  uint64_t workspace = 0;             ///< each device's, for cuBLASLt
  std::optional<ChangedPlan> changed; ///< for --what-if
  /// The median and the 95th percentile of the makespan.
  std::optional<std::pair<double, double>> noise;
  /// The proof of the plan's bound without a search, if it is asked for.
  std::optional<planner::PlanBound> bound;
  OrderChoice order;        ///< for --schedule auto
  ShardingChoice shardings; ///< for --shardings
};

/// The request that the plans of a report have in common; it refers to `report`
/// and `options`.
MachineRequest requestOf(const PlanRequest &options, PlanReport &report);

/// Plans the program for the machine of its target, which openTarget() makes
/// known to `report`. `program` is left as the plan's transforms change it.
Result<void> planProgram(LoadedProgram &program, const PlanRequest &options,
                         PlanReport &report);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_PLANPROGRAM_H
