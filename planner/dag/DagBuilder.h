// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_DAGBUILDER_H
#define MGPU_PLANNER_DAG_DAGBUILDER_H

// Adds nodes to a Dag in program order and finds what each must follow.

#include "planner/dag/Dag.h"
#include "planner/dag/IntervalIndex.h"

#include <deque>
#include <span>
#include <unordered_map>

namespace mgpu::planner {

/// Two uses of one buffer conflict when one of them writes and overlap() of
/// their boxes is not None; the later one of two conflicting nodes must follow
/// the earlier. The tracker adds edges whose transitive closure orders exactly
/// the pairs that conflict in bytes, and never an edge between nodes that do
/// not conflict, except Collective: each CollectiveCall follows the one before
/// it on its communicator.
///
/// Only uses that a later write has not covered stay in view, so n nodes on
/// disjoint or chained boxes cost O(n log n + edges). Strided boxes whose byte
/// ranges interleave are compared one by one.
///
/// The caller does not touch dag.nodes or dag.edges while a tracker is in use;
/// it may add buffers. The edges come out normalized.
class DependencyTracker {
public:
  explicit DependencyTracker(Dag &dag) : dag(dag) {}

  /// Appends `node`; `after` names further nodes it must follow (Data edges).
  NodeId append(DagNode node, std::span<const NodeId> after = {});
  /// Appends node `id` of another DAG, as it is, and shares it.
  NodeId share(const Dag &other, NodeId id, std::span<const NodeId> after = {});

private:
  /// A use still in view: position in its node's `uses`.
  struct LiveUse {
    NodeId node;
    uint32_t use;
    bool dense;
  };
  struct BufferState {
    IntervalIndex<LiveUse> writes; ///< uses that write, whether they read too
    IntervalIndex<LiveUse> reads;  ///< uses that only read
  };

  const BufferUse &useOf(const LiveUse &live) const {
    return dag.node(live.node).uses[live.use];
  }
  NodeId connectLast(std::span<const NodeId> after);
  void findConflicts(NodeId id, const BufferUse &use);
  void retireCovered(const BufferUse &use);

  Dag &dag;
  std::deque<BufferState> buffers;
  std::unordered_map<uint32_t, NodeId> lastOnCommunicator;
  std::vector<DepEdge> found; ///< edges to the node being appended
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_DAGBUILDER_H
