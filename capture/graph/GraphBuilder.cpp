// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphBuilder.h"

#include "planner/plan/StreamClocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace mgpu::capture {

using namespace planner;

// The edges of a graph: what a plan says that a node comes after.

namespace {

// One node of a program becomes one node of a driver's graph.

/// It refers to all that it is made of. resolveBuffers() comes first.
class NodeMaker {
public:
  NodeMaker(const planner::Plan &plan, const planner::Dag &dag,
            const BufferAddresses &addresses,
            std::span<const device::KernelHandle> kernels,
            device::GraphDriver &graph, const GraphPart &part)
      : plan(plan), dag(dag), addresses(addresses), kernels(kernels),
        graph(graph), part(part) {}

  /// Finds where each buffer lies. Invalid where the plan does not fit.
  Result<void> resolveBuffers();
  Result<device::GraphNodeId>
  add(const planner::DagNode &node,
      std::span<const device::GraphNodeId> dependencies, bool mayBeginEarly);

private:
  /// A hang among GPUs is told of without the DAG.
  std::string nameOf(const planner::DagNode &node) const;
  Result<std::byte *> address(const planner::DagNode &node,
                              planner::BufferId id) const;
  Result<std::byte *> address(const planner::DagNode &node,
                              planner::BufferId id, const Box &box) const;
  Result<device::GraphNodeId>
  addKernel(const planner::DagNode &node, const planner::KernelCall &call,
            std::span<const device::GraphNodeId> dependencies,
            bool mayBeginEarly);
  Result<device::GraphNodeId>
  addCopy(const planner::DagNode &node, const planner::CopyCall &call,
          std::span<const device::GraphNodeId> dependencies,
          bool mayBeginEarly);
  Result<device::GraphNodeId>
  addCollective(const planner::DagNode &node,
                const planner::CollectiveCall &call,
                std::span<const device::GraphNodeId> dependencies);
  /// A copy between devices of two processes.
  Result<device::GraphNodeId>
  addSendRecv(const planner::DagNode &node, const planner::CopyCall &call,
              std::span<const device::GraphNodeId> dependencies);

  const planner::Plan &plan;
  const planner::Dag &dag;
  const BufferAddresses &addresses;
  std::span<const device::KernelHandle> kernels;
  device::GraphDriver &graph;
  const GraphPart &part;                        ///< what is here
  std::vector<std::byte *> buffers;             ///< by BufferId
  std::vector<std::optional<uint64_t>> inArena; ///< where, by BufferId
};

using device::GraphNodeId;

/// An error about a node, at its place in the source.
tl::unexpected<Error> failAt(const DagNode &node, ErrorKind kind,
                             std::string_view message) {
  std::string where = node.location.empty() ? "" : node.location + ": ";
  return fail(kind, fmt::format("{}node '{}': {}", where, node.name, message));
}

std::string NodeMaker::nameOf(const DagNode &node) const {
  return !part.isAll() && !node.location.empty()
             ? fmt::format("{} ({})", node.name, node.location)
             : node.name;
}

Result<void> NodeMaker::resolveBuffers() {
  buffers.assign(dag.buffers.size(), nullptr);
  inArena.assign(dag.buffers.size(), std::nullopt);
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    if (k < addresses.own.size())
      buffers[k] = addresses.own[k];
  for (const Placement &placement : plan.placements) {
    if (placement.buffer.value >= dag.buffers.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("the plan places buffer {}, but the program has "
                              "{}: plan it again",
                              placement.buffer.value, dag.buffers.size()));
    const Buffer &buffer = dag.buffer(placement.buffer);
    auto device = size_t(buffer.device.value);
    if (!isInArena(buffer) || device >= addresses.arenas.size() ||
        device >= plan.arenaBytes.size() ||
        placement.offset % arenaAlignment != 0 ||
        placement.offset > plan.arenaBytes[device] ||
        buffer.sizeBytes > plan.arenaBytes[device] - placement.offset)
      return fail(ErrorKind::Invalid,
                  fmt::format("the plan places buffer '{}' at byte {} of "
                              "device {}, where there is no room for it: plan "
                              "it again",
                              buffer.name, placement.offset,
                              buffer.device.value));
    inArena[placement.buffer.value] = placement.offset;
    if (addresses.arenas[device] && !buffers[placement.buffer.value])
      buffers[placement.buffer.value] =
          addresses.arenas[device] + placement.offset;
  }
  return {};
}

Result<std::byte *> NodeMaker::address(const DagNode &node, BufferId id) const {
  if (id.value >= buffers.size())
    return failAt(
        node, ErrorKind::Invalid,
        fmt::format("uses buffer {}, which does not exist", id.value));
  if (!buffers[id.value] && dag.buffer(id).sizeBytes != 0)
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("uses buffer '{}', which has no address: it is "
                              "neither placed by the plan nor bound",
                              dag.buffer(id).name));
  return buffers[id.value];
}

Result<std::byte *> NodeMaker::address(const DagNode &node, BufferId id,
                                       const Box &box) const {
  MGPU_TRY_ASSIGN(std::byte * base, address(node, id));
  if (box.sizes.size() != box.strides.size())
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("has a view of buffer '{}' with {} sizes but {} "
                              "strides",
                              dag.buffer(id).name, box.sizes.size(),
                              box.strides.size()));
  auto [low, high] = box.byteRange();
  if (low != high &&
      (low < 0 || high < low || uint64_t(high) > dag.buffer(id).sizeBytes))
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("uses bytes {} to {} of buffer '{}', which has "
                              "{}",
                              low, high, dag.buffer(id).name,
                              dag.buffer(id).sizeBytes));
  return base;
}

Result<GraphNodeId>
NodeMaker::addKernel(const DagNode &node, const KernelCall &call,
                     std::span<const GraphNodeId> dependencies,
                     bool mayBeginEarly) {
  if (call.kernel.value >= dag.kernels.size() ||
      call.kernel.value >= kernels.size())
    return failAt(
        node, ErrorKind::Invalid,
        fmt::format("calls kernel {}, which is not loaded", call.kernel.value));
  const KernelSpec &spec = dag.kernels[call.kernel.value];
  if (call.arguments.size() != spec.numArguments || node.devices.size() != 1)
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("calls kernel '{}' with {} arguments on {} "
                              "devices; it takes {} on one device",
                              spec.name, call.arguments.size(),
                              node.devices.size(), spec.numArguments));
  device::KernelNodeParams params{node.name,
                                  node.devices[0],
                                  kernels[call.kernel.value],
                                  call.grid,
                                  {},
                                  call.part,
                                  mayBeginEarly,
                                  {},
                                  spec.location};
  for (const KernelArgument &argument : call.arguments) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      params.arguments.push_back(*bits);
      continue;
    }
    BufferId id = std::get<BufferId>(argument.value);
    MGPU_TRY_ASSIGN(std::byte * base, address(node, id));
    if (argument.offsetBytes < 0 ||
        uint64_t(argument.offsetBytes) > dag.buffer(id).sizeBytes)
      return failAt(node, ErrorKind::Invalid,
                    fmt::format("passes byte {} of buffer '{}', which has {}",
                                argument.offsetBytes, dag.buffer(id).name,
                                dag.buffer(id).sizeBytes));
    params.arguments.push_back(uint64_t(uintptr_t(base)) +
                               uint64_t(argument.offsetBytes));
    if (spec.cudaFile())
      params.memory.push_back({base, dag.buffer(id).sizeBytes,
                               std::ranges::any_of(node.uses,
                                                   [&](const BufferUse &use) {
                                                     return use.buffer == id &&
                                                            use.writes;
                                                   }),
                               dag.buffer(id).name});
  }
  return graph.addKernel(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addCopy(const DagNode &node, const CopyCall &call,
                   std::span<const GraphNodeId> dependencies,
                   bool mayBeginEarly) {
  MGPU_TRY_ASSIGN(std::byte * source,
                  address(node, call.source, call.sourceBox));
  MGPU_TRY_ASSIGN(std::byte * destination,
                  address(node, call.destination, call.destinationBox));
  device::CopyNodeParams params;
  params.name = node.name;
  params.device =
      node.devices.empty() ? DeviceId::host() : node.devices.front();
  params.destination = destination;
  params.source = source;
  params.destinationBox = call.destinationBox;
  params.sourceBox = call.sourceBox;
  params.mayBeginEarly = mayBeginEarly;
  return graph.addCopy(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addCollective(const DagNode &node, const CollectiveCall &call,
                         std::span<const GraphNodeId> dependencies) {
  device::CollectiveNodeParams params;
  params.name = nameOf(node);
  params.kind = call.kind;
  params.reduction = call.reduction;
  params.elementType = call.elementType;
  params.root = call.root;
  params.pairs = call.pairs;
  for (size_t rank = 0; rank < call.members.size(); ++rank) {
    const CollectiveMember &member = call.members[rank];
    device::CollectiveMemberParams out;
    out.device = member.device;
    // The sides a kind does not use may name any buffer, or none.
    auto [sends, receives] = sidesOf(call, rank);
    // Ends on other GPUs have no address here, but their boxes count, and
    // where they are.
    const bool here = part.holds(member.device);
    if (sends && member.send.value < inArena.size())
      out.sendInArena = inArena[member.send.value];
    if (receives && member.recv.value < inArena.size())
      out.recvInArena = inArena[member.recv.value];
    if (sends && !here)
      out.sendBox = member.sendBox;
    else if (sends) {
      MGPU_TRY_ASSIGN(out.send, address(node, member.send, member.sendBox));
      out.sendBox = member.sendBox;
    }
    if (receives && !here)
      out.recvBox = member.recvBox;
    else if (receives) {
      MGPU_TRY_ASSIGN(out.recv, address(node, member.recv, member.recvBox));
      out.recvBox = member.recvBox;
    }
    params.members.push_back(std::move(out));
  }
  return graph.addCollective(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addSendRecv(const DagNode &node, const CopyCall &call,
                       std::span<const GraphNodeId> dependencies) {
  DeviceId from = dag.buffer(call.source).device;
  DeviceId to = dag.buffer(call.destination).device;
  device::CollectiveNodeParams params;
  params.name = nameOf(node);
  params.kind = CollectiveKind::SendRecv;
  params.elementType = ElementType::I8; // bytes, whatever they mean
  params.members.resize(2);
  params.members[0].device = from;
  params.members[0].sendBox = call.sourceBox;
  params.members[1].device = to;
  params.members[1].recvBox = call.destinationBox;
  params.members[0].sendInArena = inArena[call.source.value];
  params.members[1].recvInArena = inArena[call.destination.value];
  if (part.holds(call.source)) {
    MGPU_TRY_ASSIGN(params.members[0].send,
                    address(node, call.source, call.sourceBox));
  }
  if (part.holds(call.destination)) {
    MGPU_TRY_ASSIGN(params.members[1].recv,
                    address(node, call.destination, call.destinationBox));
  }
  return graph.addCollective(params, dependencies);
}

Result<GraphNodeId> NodeMaker::add(const DagNode &node,
                                   std::span<const GraphNodeId> dependencies,
                                   bool mayBeginEarly) {
  if (const auto *kernel = std::get_if<KernelCall>(&node.work))
    return addKernel(node, *kernel, dependencies, mayBeginEarly);
  if (const auto *copy = std::get_if<CopyCall>(&node.work))
    return part.isCommunication(node)
               ? addSendRecv(node, *copy, dependencies)
               : addCopy(node, *copy, dependencies, mayBeginEarly);
  if (const auto *collective = std::get_if<CollectiveCall>(&node.work))
    return addCollective(node, *collective, dependencies);
  return failAt(node, ErrorKind::Unsupported,
                "is known only by its cost and cannot run: plan and simulate "
                "this program instead");
}

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
