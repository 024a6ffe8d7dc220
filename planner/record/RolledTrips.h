// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_ROLLEDTRIPS_H
#define MGPU_PLANNER_RECORD_ROLLEDTRIPS_H

// Keeps the program's outermost loop rolled. Two trips of it are recorded, so
// that what one trip does to the next is judged like any other code; if both
// made the same nodes, one is dropped and the other stands for all.

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// Two trips of a loop in a DAG that holds one after the other.
struct RolledTrips {
  std::string location; ///< of the loop
  uint64_t trips = 0;
  /// Where the first trip, the second and what follows begin.
  std::array<uint32_t, 3> nodes = {}, buffers = {};
  /// Nodes of the first trip that stand before the loop.
  std::vector<NodeId> hoisted;
};

/// Removes the second trip and gives the rest the phases Prologue, Replay and
/// Epilogue; buffers that carry bytes between trips become Resident. The result
/// is the new id of each buffer (for a removed one, that of its twin). Fails
/// and changes nothing if the trips differ.
Result<std::vector<BufferId>> dropSecondTrip(Dag &dag,
                                             const RolledTrips &rolled);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_ROLLEDTRIPS_H
