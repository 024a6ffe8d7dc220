// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_NODERECORDER_H
#define MGPU_PLANNER_IMPORT_NODERECORDER_H

// Appends nodes to the DAG in program order and judges each new dependence: if
// the program's own streams and waits do not order it, it is a race.

#include "planner/dag/DagBuilder.h"
#include "planner/import/SourceOrder.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

namespace mgpu::planner {

/// A node with what the race check needs of it. A collective has one call per
/// rank, everything else exactly one.
struct RecordedNode {
  struct Call {
    SourcePoint point;  ///< its place on its queue
    VectorClock before; ///< what its queue had waited for when it was issued
    mlir::Location location;
  };
  DagNode node;
  llvm::SmallVector<Call, 1> calls;
  std::vector<uint32_t> callOfUse; ///< empty: all of call 0
  std::vector<bool> inexact;       ///< per use: may touch less; empty: none
};

class NodeRecorder {
public:
  NodeRecorder(Dag &dag, bool racesAreErrors)
      : dag(dag), tracker(dag), racesAreErrors(racesAreErrors) {}

  /// Appends the node. Fails after diagnosing a race, when races are errors.
  mlir::LogicalResult record(RecordedNode node);
  uint32_t numRaces() const { return races; }
  mlir::Location locationOf(NodeId node) const {
    return recorded[node.value].calls.front().location;
  }

private:
  struct Conflict {
    Overlap overlap = Overlap::None;
    mlir::Location earlier, later;
    BufferId buffer;
  };
  std::optional<Conflict> unorderedConflict(NodeId from, const RecordedNode &to,
                                            const DagNode &toNode) const;
  mlir::LogicalResult report(const Conflict &conflict);

  Dag &dag;
  DependencyTracker tracker;
  bool racesAreErrors;
  uint32_t races = 0, reports = 0;
  std::vector<RecordedNode> recorded; ///< without `node`, which the DAG owns
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_NODERECORDER_H
