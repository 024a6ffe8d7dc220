// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_NODERECORDER_H
#define MGPU_PLANNER_IMPORT_NODERECORDER_H

// Appends nodes to the DAG in program order and judges each new dependence: if
// the program's own streams and waits do not order it, it is a race.

#include "planner/dag/DagBuilder.h"
#include "planner/dag/IntervalIndex.h"
#include "planner/import/SourceOrder.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
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
  NodeRecorder(Dag &dag, const SourceOrder &order, bool racesAreErrors)
      : dag(dag), order(order), tracker(dag), racesAreErrors(racesAreErrors) {}

  /// Appends the node. Fails after diagnosing a race, when races are errors.
  /// `isOpen`: the node is queued behind a collective call that has no match
  /// yet. What the node follows is known only once it has, so its races are
  /// judged by judgeDeferred.
  mlir::LogicalResult record(RecordedNode node, bool isOpen);
  /// Nodes not judged yet that follow `point` follow all `clock` covers.
  void learn(SourcePoint point, const VectorClock &clock);
  /// Judges the deferred nodes of whose calls none `isOpen` any more.
  mlir::LogicalResult
  judgeDeferred(llvm::function_ref<bool(const RecordedNode &)> isOpen);
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
  /// A use by its position in its node's `uses`.
  struct Use {
    NodeId node;
    uint32_t index;
  };
  struct Deferred {
    NodeId node;
    std::vector<NodeId> suspects; ///< earlier nodes it may race with
  };
  std::vector<NodeId> suspectsOf(NodeId id, const RecordedNode &entry,
                                 size_t firstEdge);
  void addHiddenSuspects(NodeId id, const RecordedNode &entry,
                         std::vector<NodeId> &suspects);
  void hideBehind(NodeId id, const RecordedNode &entry, size_t firstEdge);
  std::optional<Conflict> unorderedConflict(NodeId from, const RecordedNode &to,
                                            const DagNode &toNode) const;
  mlir::LogicalResult judge(NodeId id, const RecordedNode &entry,
                            llvm::ArrayRef<NodeId> suspects);
  mlir::LogicalResult report(const Conflict &conflict);
  const SourcePoint &pointOf(Use use) const;

  Dag &dag;
  const SourceOrder &order;
  DependencyTracker tracker;
  bool racesAreErrors;
  uint32_t races = 0, reports = 0;
  std::vector<RecordedNode> recorded; ///< without `node`, which the DAG owns
  std::vector<Deferred> deferred;
  /// Per buffer, the sure uses that a write which may touch less took out of
  /// the tracker's view: a later race with them is proven, one with that write
  /// only possible.
  std::vector<IntervalIndex<Use>> hidden;
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> wasHidden;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_NODERECORDER_H
