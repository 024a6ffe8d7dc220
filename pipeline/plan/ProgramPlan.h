// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PLAN_PROGRAMPLAN_H
#define MGPU_PIPELINE_PLAN_PROGRAMPLAN_H

// The plan step for any target: one plan, the plans under ever less memory, and
// the plan of a changed machine. A plan comes from a file, from the program's
// bundle, or is made.

#include "pipeline/program/LoadedProgram.h"
#include "planner/schedule/MakePlan.h"

namespace mgpu::pipeline {

struct PlanOptions {
  std::string scheduler = "list";  ///< "serial", "list" or "shuffled"
  uint64_t seed = 0;               ///< for "shuffled"
  uint32_t streams = 4;            ///< of each device
  std::string transforms = "auto"; ///< "auto" changes nothing of what runs here
  std::string memory;              ///< bytes of each device, as "100GB"
  /// How long the search may take; empty: a second for a machine that is not
  /// here, else what planner::makePlan() takes.
  std::string budget;
  std::string collectivesFile; ///< measured times in place of the curves
  /// The user asked for a schedule. Plans that were stored are not used.
  bool isChosen = false;
  std::string planFile;      ///< a plan of `plan -o`; it wins over all others
  bool mustBeStored = false; ///< no plan is made of a program without one
};

/// Usage for a --seed of a plan that is not drawn by it, and for several
/// --streams of one that has no use for them.
Result<void> checkScheduler(const PlanOptions &options,
                            const std::set<std::string> &given);

/// The request that the plans of a program for one machine have in common. It
/// refers to its parts.
struct MachineRequest {
  const PlanOptions &plan;
  /// The machine to plan for; if it is empty, or there is none, the one of the
  /// program's target, which is left here.
  std::optional<planner::Machine> *machine = nullptr;
  uint64_t workspace = 0; ///< bytes of each device's memory, for cuBLASLt
  std::vector<planner::OpFactor> ops = {}; ///< PlanRequest::ops
};

/// The plan for the program's target. Where the target is here, that is the one
/// of PlanOptions::planFile, else the bundle's, unless the user asked for
/// another, and proven; nothing else is known of it, and no machine looked for.
/// Else one is made; transforms that are listed are made there, and not tried.
/// `program` is left as the plan's transforms change it, so kernels are
/// compiled afterwards.
Result<planner::TargetPlan> makePlan(LoadedProgram &program,
                                     const MachineRequest &request);

/// A plan that `plan -o` has written, proven. Applies the transforms it names.
/// `text` is that of the file, where it was read already.
Result<planner::Plan> readPlan(const std::string &path, planner::Dag &dag,
                               std::optional<std::string_view> text = {});

/// One plan of a front: no other one has as little memory and as little time.
struct FrontPoint {
  uint64_t memory = 0; ///< bytes of the fullest device
  double makespanUs = 0, contendedUs = 0, lowerBoundUs = 0;
  double chosenUs = 0; ///< the one of both times that plans are chosen by
  std::vector<std::string> transforms;
  std::string order = {}; ///< of --schedule auto: the one of this plan
};
struct Front {
  std::vector<FrontPoint> points; ///< by falling memory
  std::string stopped;            ///< why there is no plan with less; or ""
};
/// Plans under ever less memory until nothing fits.
Result<Front> makeFront(const LoadedProgram &program,
                        const MachineRequest &request);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PLAN_PROGRAMPLAN_H
