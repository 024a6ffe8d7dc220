// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_MACHINEPLAN_H
#define MGPU_PIPELINE_MACHINEPLAN_H

// The plan step for a machine that is not here (--target sim:...): one plan,
// the plans under ever less memory, and the plan of a changed machine.

#include "pipeline/ProgramPlan.h"
#include "planner/schedule/TargetPlan.h"

namespace mgpu::pipeline {

struct MachineOptions {
  std::string memory;          ///< bytes of each device, as "100GB"
  std::string budget = "1s";   ///< how long the search may take
  std::string collectivesFile; ///< measured times in place of the curves
};

/// The machine of a target, with the times of options.collectivesFile.
Result<planner::TopologyEstimator> openMachine(const std::string &target,
                                               const MachineOptions &options);

/// What plans for one machine have in common. It refers to its parts.
struct MachineRequest {
  const planner::TopologyEstimator &machine;
  const PlanOptions &plan;
  const MachineOptions &options;
  uint64_t workspace = 0; ///< bytes of each device's memory, for cuBLASLt
};

/// `memory` is in bytes of each device; 0 stands for what the options say.
Result<planner::TargetPlan> makePlan(const planner::Dag &dag,
                                     const MachineRequest &request,
                                     uint64_t memory = 0,
                                     std::vector<planner::OpFactor> ops = {});

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

#endif // MGPU_PIPELINE_MACHINEPLAN_H
