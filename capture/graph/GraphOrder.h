// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_GRAPHORDER_H
#define MGPU_CAPTURE_GRAPH_GRAPHORDER_H

// The edges of a graph: what a plan says that a node comes after.

#include "capture/graph/GraphBuilder.h"
#include "planner/plan/StreamClocks.h"

#include <map>
#include <optional>

namespace mgpu::capture {

/// It refers to all that it is made of.
class GraphOrder {
public:
  GraphOrder(const planner::Plan &plan, const planner::Dag &dag,
             planner::Phase phase, const GraphPart &part);

  /// Appends the edges to the graph's next node, `id`, each once: those of its
  /// streams and of its waits. The driver and proveGraph() see the same.
  Result<void> addDependencies(const planner::PlanStep &step, uint32_t id,
                               std::vector<GraphEdge> &edges);
  /// Whether a node is in the graph already.
  bool has(planner::NodeId node) const {
    return graphNodes[node.value] != absent;
  }
  void note(planner::NodeId node, uint32_t id) { graphNodes[node.value] = id; }

private:
  Result<void> followPlan(const planner::PlanStep &step, uint32_t id,
                          std::vector<uint32_t> &sources);
  void followPast(const planner::PlanStep &step, uint32_t id,
                  std::vector<uint32_t> &sources);

  static constexpr uint32_t absent = UINT32_MAX;

  const planner::Plan &plan;
  const planner::Dag &dag;
  planner::Phase phase;
  const GraphPart &part; ///< what is here
  const planner::Predecessors predecessors;
  std::vector<uint32_t> graphNodes; ///< by NodeId
  /// The last graph node of each communicator, by its members.
  std::map<std::vector<DeviceId>, uint32_t> lastOf;
  /// The last graph node of each stream.
  std::map<planner::PlanStream, uint32_t> streamTails;
  // Where processes have memory of the host of their own:
  std::optional<planner::StreamClocks> clocks; ///< what the plan orders
  std::vector<uint32_t> stepOf;                ///< of each graph node
  /// Nodes, by stream here.
  std::map<planner::PlanStream, std::vector<uint32_t>> chains;
  std::optional<uint32_t> lastMessage; ///< the last communication
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_GRAPHORDER_H
