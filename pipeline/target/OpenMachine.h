// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_OPENMACHINE_H
#define MGPU_PIPELINE_TARGET_OPENMACHINE_H

// The machine that a target names, to plan for: made alike of the host, of what
// the driver says of a GPU, and of a topology or calibration.

#include "planner/cost/TargetMachine.h"

namespace mgpu::pipeline {

/// Whether the target is a machine that is not here, and can only be planned
/// for: "sim:NAME" or "sim:FILE".
bool isElsewhere(const std::string &target);

/// The machine of `target`, with `devices` devices where the target is here.
/// `collectivesFile`, or "", has measured times in place of the curves. GPUs
/// are asked for at the driver: Absent where there is none. Where those of a
/// target differ, the slowest stands for all. The host's rates are those that
/// `calibrate` has written to hostRatesPath(`database`), if it was on this
/// processor and there are no other ranks; else they are assumed.
Result<planner::Machine> openMachine(const std::string &target,
                                     uint32_t devices,
                                     const std::string &collectivesFile = "",
                                     const std::string &database = "");

/// The file of this host's rates, beside the database that is chosen (--db) or
/// the default one.
Result<std::string> hostRatesPath(const std::string &database);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_OPENMACHINE_H
