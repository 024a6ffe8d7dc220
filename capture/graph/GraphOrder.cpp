// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphOrder.h"

#include "capture/graph/NodeMaker.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;

GraphOrder::GraphOrder(const Plan &plan, const Dag &dag, Phase phase,
                       const GraphPart &part)
    : plan(plan), dag(dag), phase(phase), part(part), predecessors(dag),
      graphNodes(dag.nodes.size(), absent) {
  if (part.hasOwnHost())
    clocks = StreamClocks::of(plan, dag);
}

Result<void> GraphOrder::addDependencies(const PlanStep &step, uint32_t id,
                                         std::vector<GraphEdge> &edges) {
  std::vector<uint32_t> sources;
  if (step.streams.empty())
    return failAt(dag.node(step.node), ErrorKind::Invalid,
                  "has no stream in the plan");
  if (clocks)
    followPast(step, id, sources);
  else
    MGPU_TRY(followPlan(step, id, sources));
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  for (uint32_t source : sources)
    if (source != id)
      edges.push_back({source, id});
  return {};
}

/// All that the plan orders before a node and that is here, be it by way of
/// other processes, whose waits are not seen here: of each stream the last such
/// node. All communications are one chain, in the plan's order, so that none
/// holds up a thread that an earlier one needs.
void GraphOrder::followPast(const PlanStep &step, uint32_t id,
                            std::vector<uint32_t> &sources) {
  const DagNode &node = dag.node(step.node);
  const auto index = uint32_t(&step - plan.steps.data());
  for (const auto &[stream, chain] : chains) {
    auto past =
        std::partition_point(chain.begin(), chain.end(), [&](uint32_t each) {
          return clocks->before(stepOf[each], index);
        });
    if (past != chain.begin())
      sources.push_back(*std::prev(past));
  }
  // A node without a stream here is ordered by the program alone.
  for (const DepEdge &edge : predecessors.of(step.node))
    if (graphNodes[edge.from.value] != absent)
      sources.push_back(graphNodes[edge.from.value]);
  if (part.isCommunication(node)) {
    if (lastMessage)
      sources.push_back(*lastMessage);
    lastMessage = id;
  }
  stepOf.push_back(index);
  for (const PlanStream &stream : step.streams)
    if (part.holds(stream.device))
      chains[stream].push_back(id);
}

Result<void> GraphOrder::followPlan(const PlanStep &step, uint32_t id,
                                    std::vector<uint32_t> &sources) {
  const DagNode &node = dag.node(step.node);
  if (part.isCommunication(node)) {
    std::vector<DeviceId> members = communicatorOf(dag, node);
    for (const auto &[others, last] : lastOf)
      if (shareTwoRanks(members, others))
        sources.push_back(last);
    lastOf[std::move(members)] = id;
  }
  for (const PlanStream &stream : step.streams) {
    if (!part.holds(stream.device))
      continue;
    auto [tail, fresh] = streamTails.try_emplace(stream, id);
    if (!fresh)
      sources.push_back(std::exchange(tail->second, id));
  }
  for (NodeId wait : step.waits) {
    if (wait.value >= dag.nodes.size())
      return failAt(
          node, ErrorKind::Invalid,
          fmt::format("waits for node {}, which does not exist", wait.value));
    if (dag.node(wait).phase != phase)
      continue; // phases follow each other whole
    // The work of another GPU is waited for in a communication.
    if (!part.takesPart(dag.node(wait)))
      continue;
    if (graphNodes[wait.value] == absent)
      return failAt(node, ErrorKind::Invalid,
                    fmt::format("waits for '{}', which the plan starts later",
                                dag.node(wait).name));
    sources.push_back(graphNodes[wait.value]);
  }
  return {};
}

} // namespace mgpu::capture
