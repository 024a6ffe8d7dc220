// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_WHATIF_H
#define MGPU_PLANNER_SCHEDULE_WHATIF_H

// Questions of the form "what if the links were twice as fast".

#include "planner/cost/TopologyEstimator.h"

namespace mgpu::planner {

/// Changes the machine or the durations of nodes as `change` says:
///   link=2x, link.nvlink=2x, link.pcie=2x   rate between devices
///   nic=2x, host_link=0.5x, memory=1.2x     rates
///   flops=2x                                arithmetic of all kinds
///   op:NAME=0.5x                            time of the nodes of that name,
///                                           `*` at the end: that begin so
/// The factor is above 0. Nodes of the DAG get frozen durations, estimated on
/// `topology` as it is by then: changes of the machine come first. Errors are
/// Usage: an unknown form, a link of another kind, a name no node has.
Result<void> applyWhatIf(const std::string &change, device::Topology &topology,
                         Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_WHATIF_H
