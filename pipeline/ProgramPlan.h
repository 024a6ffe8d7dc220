// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAMPLAN_H
#define MGPU_PIPELINE_PROGRAMPLAN_H

// The plan step: one plan for the host or for GPUs. It comes from a file, from
// the program's bundle, or from a scheduler.

#include "pipeline/LoadedProgram.h"
#include "planner/plan/Plan.h"

namespace mgpu::pipeline {

struct PlanOptions {
  std::string scheduler = "list";  ///< "serial", "list" or "shuffled"
  uint64_t seed = 0;               ///< for "shuffled"
  uint32_t streams = 4;            ///< of each device
  std::string transforms = "auto"; ///< "auto" and "none" change nothing here
  /// The user asked for a schedule. Plans that were stored are not used.
  bool isChosen = false;
  std::string planFile;      ///< a plan of `plan -o`; it wins over all others
  bool mustBeStored = false; ///< no plan is made of a program without one
};

/// Usage for a --seed of a plan that is not drawn by it.
Result<void> checkSeed(const PlanOptions &options,
                       const std::set<std::string> &given);

/// The plan of options.planFile; else the bundle's, unless the user asked for
/// another; else that of options.scheduler. It is proven. The transforms it was
/// made after are applied to `program`, so kernels are compiled afterwards.
Result<planner::Plan> makePlan(LoadedProgram &program,
                               const PlanOptions &options);

/// A plan that `plan -o` has written, proven. Applies the transforms it names.
Result<planner::Plan> readPlan(const std::string &path, planner::Dag &dag);
/// The same of its text; `path` is what errors call it.
Result<planner::Plan> readPlanText(const std::string &path,
                                   std::string_view text, planner::Dag &dag);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAMPLAN_H
