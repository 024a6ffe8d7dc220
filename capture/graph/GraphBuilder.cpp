// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphBuilder.h"

#include "capture/graph/GraphOrder.h"
#include "capture/graph/NodeMaker.h"

#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;
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
