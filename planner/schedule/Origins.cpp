// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Origins.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::planner {

void recordOrigins(Plan &plan, const Dag &dag,
                   const LatencyEstimator &latency) {
  for (PlanStep &step : plan.steps)
    step.origin = latency.origin(dag, step.node);
}

bool KindOrigins::isMixed() const {
  return std::count(nodes.begin(), nodes.end(), 0u) + 1 < long(nodes.size());
}

static std::string kindOf(const DagNode &node) {
  if (auto *call = std::get_if<CollectiveCall>(&node.work))
    return std::string(toString(call->kind));
  if (auto *call = std::get_if<OpaqueCall>(&node.work);
      call && call->isCollective)
    return std::string(toString(call->kind));
  return workClass(node) == WorkClass::Copy ? "copy"
         : node.isMatmul                    ? "matrix product"
                                            : "kernel";
}

std::vector<KindOrigins> originsOf(const Plan &plan, const Dag &dag) {
  std::vector<KindOrigins> kinds;
  for (const PlanStep &step : plan.steps) {
    const std::string kind = kindOf(dag.node(step.node));
    auto at = std::ranges::find(kinds, kind, &KindOrigins::kind);
    if (at == kinds.end())
      at = kinds.insert(kinds.end(), {kind});
    ++at->nodes[size_t(step.origin)];
  }
  return kinds;
}

std::vector<std::string> originLines(const Plan &plan, const Dag &dag) {
  std::vector<std::string> lines;
  for (const KindOrigins &each : originsOf(plan, dag)) {
    std::vector<std::string> counts;
    for (Origin origin : allOrigins)
      if (const uint32_t nodes = each.nodes[size_t(origin)])
        counts.push_back(fmt::format("{} {}", nodes, toString(origin)));
    lines.push_back(fmt::format(
        "{}: {}{}", each.kind, fmt::join(counts, ", "),
        each.isMixed() ? ": mixed, so which of them is longer may be the "
                         "doing of where their times come from"
                       : ""));
  }
  return lines;
}

} // namespace mgpu::planner
