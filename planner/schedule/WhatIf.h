// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_WHATIF_H
#define MGPU_PLANNER_SCHEDULE_WHATIF_H

// Questions of the form "what if the links were twice as fast".

#include "planner/cost/TargetMachine.h"
#include "planner/schedule/transform/Transform.h"

namespace mgpu::planner {

///   link=2x, link.nvlink=2x, link.pcie=2x   rate between devices
///   nic=2x, host_link=0.5x, memory=1.2x     rates
///   flops=2x                                arithmetic of all kinds
///   op:NAME=0.5x                            time of the nodes of that name,
///                                           in which `*` is any letters
/// The factor is above 0. A frozen duration changes with the machine as the
/// estimates of its node do.
struct WhatIf {
  device::Topology topology;
  /// The program, or file, with the times of its own nodes changed. A node that
  /// transforms make of them takes their factor on, a bucket by their shares.
  Dag dag;
  /// Names that only nodes of the plan have: those transforms made.
  std::vector<OpFactor> made;
  uint32_t scaled = 0; ///< frozen durations that the machine's change moved
};

/// Makes all of `changes`. `planned` is the DAG of the plan that was shown,
/// after its transforms. Errors are Usage: an unknown form, a link of another
/// kind, a name that no node of either has.
Result<WhatIf> applyWhatIf(std::span<const std::string> changes,
                           const Machine &machine, const Dag &program,
                           const Dag &planned);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_WHATIF_H
