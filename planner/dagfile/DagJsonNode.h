// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_DAGJSONNODE_H
#define MGPU_PLANNER_DAGFILE_DAGJSONNODE_H

// The fields of one node of an mgpu-dag/2 file that say what it is, whatever
// the other nodes are. `dag` is what the top of the file says.

#include "planner/dagfile/DagJsonFields.h"

#include <vector>

namespace mgpu::planner {

/// "deps", whose form has been checked.
std::vector<NodeId> dependenciesOf(const Json &object);
/// A device's number, or "host".
Result<DeviceId> readPlace(const Dag &dag, const Fields &fields,
                           const char *field);
Result<std::vector<int64_t>> readNumbers(const Fields &fields,
                                         const char *field);
/// When it runs, and where it stands in the source.
Result<void> readPhase(const Dag &dag, const Fields &fields, DagNode &node);
/// Its devices, and the group of a collective.
Result<void> readDevices(const Dag &dag, const Fields &fields, DagNode &node,
                         OpaqueCall &call);
/// Reads what a kernel, a fill or a collective computes and moves.
Result<void> readCost(const Dag &dag, const Fields &fields, NodeKind other,
                      OpaqueCall call, DagNode &node);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_DAGJSONNODE_H
