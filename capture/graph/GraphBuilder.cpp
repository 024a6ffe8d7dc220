// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphBuilder.h"

#include "capture/graph/NodeMaker.h"
#include "planner/plan/StreamClocks.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;

// The edges of a graph: what a plan says that a node comes after.

namespace {

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

} // namespace

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

EarlyNodes EarlyNodes::of(std::span<const device::KernelHandle> kernels,
                          const device::Driver &driver) {
  EarlyNodes early;
  for (device::KernelHandle kernel : kernels)
    early.kernels.push_back(driver.awaits(kernel));
  if (std::find(early.kernels.begin(), early.kernels.end(), true) !=
      early.kernels.end())
    early.copyBytes = driver.earlyCopyBytes();
  return early;
}

bool EarlyNodes::isLaunch(const Dag &dag, const DagNode &node) const {
  if (std::holds_alternative<KernelCall>(node.work))
    return true;
  const auto *copy = std::get_if<CopyCall>(&node.work);
  if (!copy || copy->source.value >= dag.buffers.size() ||
      copy->destination.value >= dag.buffers.size())
    return false;
  const DeviceId from = dag.buffer(copy->source).device;
  return !from.isHost() && from == dag.buffer(copy->destination).device &&
         uint64_t(copy->sourceBox.numElements()) *
                 copy->sourceBox.elementBytes <=
             copyBytes;
}

bool EarlyNodes::waits(const Dag &dag, const DagNode &node) const {
  if (const auto *call = std::get_if<KernelCall>(&node.work))
    return call->kernel.value < kernels.size() && kernels[call->kernel.value];
  return isLaunch(dag, node);
}

using device::GraphNodeId;

namespace {

/// Whether a node may begin before its one dependency has ended (GraphProof.cpp
/// says why that is enough).
bool mayBeginEarly(const Dag &dag, const EarlyNodes &earlyNodes,
                   const DagNode &node,
                   std::span<const GraphNodeId> dependencies,
                   const std::vector<NodeId> &dagNodes) {
  return dependencies.size() == 1 && earlyNodes.waits(dag, node) &&
         earlyNodes.isLaunch(dag, dag.node(dagNodes[dependencies[0].value]));
}

/// A graph node for each step of the phase that is here.
Result<void> addSteps(const Plan &plan, const Dag &dag, Phase phase,
                      const GraphPart &part, const EarlyNodes &earlyNodes,
                      NodeMaker &nodes, ExecutableGraph &out) {
  MGPU_TRY(nodes.resolveBuffers());
  GraphOrder order(plan, dag, phase, part);
  std::vector<GraphNodeId> dependencies;
  for (const PlanStep &step : plan.steps) {
    if (step.node.value >= dag.nodes.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("the plan runs node {}, but the program has {}: "
                              "plan it again",
                              step.node.value, dag.nodes.size()));
    const DagNode &node = dag.node(step.node);
    if (node.phase != phase || !part.takesPart(node))
      continue;
    if (order.has(step.node))
      return failAt(node, ErrorKind::Invalid, "has two steps in the plan");
    auto id = uint32_t(out.dagNodes.size());
    size_t before = out.edges.size();
    MGPU_TRY(order.addDependencies(step, id, out.edges));
    dependencies.clear();
    for (size_t k = before; k < out.edges.size(); ++k)
      dependencies.push_back({out.edges[k].first});
    const bool isEarly =
        mayBeginEarly(dag, earlyNodes, node, dependencies, out.dagNodes);
    if (isEarly)
      out.early.push_back(out.edges.back());
    MGPU_TRY_ASSIGN(GraphNodeId made, nodes.add(node, dependencies, isEarly));
    if (made.value != id)
      return failAt(node, ErrorKind::Internal,
                    "the device numbers its graph nodes unexpectedly");
    order.note(step.node, id);
    out.dagNodes.push_back(step.node);
  }
  return {};
}

} // namespace

Result<ExecutableGraph>
buildGraph(const Plan &plan, const Dag &dag, Phase phase,
           const BufferAddresses &addresses,
           std::span<const device::KernelHandle> kernels,
           device::Driver &driver) {
  ExecutableGraph out;
  MGPU_TRY(rebuildGraph(plan, dag, phase, addresses, kernels, driver, out));
  return out;
}

Result<void> rebuildGraph(const Plan &plan, const Dag &dag, Phase phase,
                          const BufferAddresses &addresses,
                          std::span<const device::KernelHandle> kernels,
                          device::Driver &driver, ExecutableGraph &graph) {
  std::unique_ptr<device::GraphDriver> building = driver.createGraph();
  ExecutableGraph out;
  const GraphPart part(dag, driver.part());
  const EarlyNodes earlyNodes = EarlyNodes::of(kernels, driver);
  NodeMaker nodes(plan, dag, addresses, kernels, *building, part);
  MGPU_TRY(addSteps(plan, dag, phase, part, earlyNodes, nodes, out));
  MGPU_TRY(proveGraph(plan, dag, phase, out.dagNodes, out.edges, part,
                      out.early, earlyNodes));
  if (graph.exec) {
    MGPU_TRY(building->instantiateOver(graph.exec));
  } else {
    MGPU_TRY_ASSIGN(graph.exec, building->instantiate());
  }
  graph.dagNodes = std::move(out.dagNodes);
  graph.edges = std::move(out.edges);
  graph.early = std::move(out.early);
  return {};
}

} // namespace mgpu::capture
