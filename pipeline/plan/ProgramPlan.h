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
  /// here, else planner::movesFor() the program.
  std::string budget;
  std::string collectivesFile; ///< measured times in place of the curves
  /// The user asked for a schedule. Plans that were stored are not used.
  bool isChosen = false;
  std::string planFile;      ///< a plan of `plan -o`; it wins over all others
  bool mustBeStored = false; ///< no plan is made of a program without one
};

/// Usage for a --seed of a plan that is not drawn by it.
Result<void> checkSeed(const PlanOptions &options,
                       const std::set<std::string> &given);

/// A request that plans for one machine have in common. It refers to its parts.
struct MachineRequest {
  const planner::Machine &machine;
  const PlanOptions &plan;
  /// Transforms that are listed are made, and not tried: of what runs here.
  bool isHere = true;
  uint64_t workspace = 0; ///< bytes of each device's memory, for cuBLASLt
};

/// `memory` is in bytes of each device; 0 stands for what the options say.
Result<planner::TargetPlan> makePlan(const planner::Dag &dag,
                                     const MachineRequest &request,
                                     uint64_t memory = 0,
                                     std::vector<planner::OpFactor> ops = {});

/// The plan of options.planFile; else the bundle's, unless the user asked for
/// another; else none. It is proven. The transforms it was made after are
/// applied to `program`, so kernels are compiled afterwards.
Result<std::optional<planner::Plan>> storedPlan(LoadedProgram &program,
                                                const PlanOptions &options);
/// storedPlan(), or else one that is made for the program's target.
Result<planner::Plan> makePlan(LoadedProgram &program,
                               const PlanOptions &options);

/// A plan that `plan -o` has written, proven. Applies the transforms it names.
Result<planner::Plan> readPlan(const std::string &path, planner::Dag &dag);
/// Reads a plan's text; `path` is what errors call it.
Result<planner::Plan> readPlanText(const std::string &path,
                                   std::string_view text, planner::Dag &dag);

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
Result<Front> makeFront(const planner::Dag &dag, const MachineRequest &request);

/// The plan of the changed program on the changed machine.
struct ChangedPlan {
  planner::TargetPlan plan;
  size_t scaled = 0;               ///< durations of the file that were scaled
  std::vector<std::string> absent; ///< what the new plan was not made to have
};
/// `changes` are as --what-if has them; `planned` is `dag` as the plan of the
/// machine without them left it.
Result<ChangedPlan> planWhatIf(const planner::Dag &dag,
                               const planner::Dag &planned,
                               const MachineRequest &request,
                               const std::vector<std::string> &changes);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PLAN_PROGRAMPLAN_H
