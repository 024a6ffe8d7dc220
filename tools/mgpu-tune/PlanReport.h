// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `plan` found, and how it is printed: for people and as JSON.
#ifndef MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H
#define MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H

#include "pipeline/ChooseOrder.h"
#include "pipeline/ChooseShardings.h"
#include "planner/schedule/PlanProof.h"
#include "tools/mgpu-tune/Options.h"

#include <optional>
#include <string_view>
#include <utility>

namespace mgpu::pipeline {

inline constexpr uint32_t noisePlays = 400; ///< simulated for --noise
inline constexpr std::string_view standardOutput = "-"; ///< as -o names it

/// A plan, and what is known of it beside.
struct PlanReport {
  planner::Plan plan;
  uint32_t threads = 0; ///< that replay it on the host, where that is known
  // Only for a machine that is not here:
  std::optional<planner::TopologyEstimator> machine;
  std::optional<planner::TargetPlan> target;
  uint64_t workspace = 0; ///< each device's, for cuBLASLt
  planner::Dag source;    ///< for --what-if: before the transforms
  std::optional<ChangedPlan> changed;
  /// The median and the 95th percentile of the makespan.
  std::optional<std::pair<double, double>> noise;
  /// What proves the plan's bound without a search, if it is asked for.
  std::optional<planner::PlanBound> bound;
  OrderChoice order;        ///< for --schedule auto
  ShardingChoice shardings; ///< for --shardings
};

/// One JSON object on the standard output.
void printJson(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options);

/// A summary, or what --explain, --steps, --shardings and -o - ask for.
void printText(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options);

/// The plans of --pareto, as a table or as JSON.
void printFront(const Front &front, bool asJson);

} // namespace mgpu::pipeline

#endif // MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H
