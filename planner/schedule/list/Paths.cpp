// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Paths.h"

#include <algorithm>

namespace mgpu::planner {

Paths longestPaths(const Dag &dag, const std::vector<double> &durations) {
  Paths paths{std::vector<double>(dag.nodes.size(), 0),
              std::vector<double>(dag.nodes.size(), 0)};
  auto samePhase = [&](const DepEdge &edge) {
    return dag.node(edge.from).phase == dag.node(edge.to).phase;
  };
  for (const DepEdge &edge : dag.edges)
    if (samePhase(edge)) {
      double &head = paths.head[edge.to.value];
      head = std::max(head,
                      paths.head[edge.from.value] + durations[edge.from.value]);
    }
  // Edges are sorted by target, so backwards every target is complete.
  for (auto edge = dag.edges.rbegin(); edge != dag.edges.rend(); ++edge)
    if (samePhase(*edge)) {
      double &tail = paths.tail[edge->from.value];
      tail = std::max(tail,
                      paths.tail[edge->to.value] + durations[edge->to.value]);
    }
  return paths;
}

} // namespace mgpu::planner
