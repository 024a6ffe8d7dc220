// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphBuilder.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace mgpu::capture {

using namespace planner;

namespace {

tl::unexpected<Error> broken(std::string message) {
  return fail(ErrorKind::Internal,
              "the graph built differs from its plan: " + std::move(message) +
                  "; please report this");
}

// The proof says of edges that a node does nothing before all nodes that edges
// lead from, directly or not, have ended. Early edges keep that:
// 1. A node with an early edge has no other, and does nothing before it has
//    waited; what it waits for is that the edge's source has ended, with all it
//    wrote to be read (PTX ISA, griddepcontrol.wait). Any other node begins
//    after the sources of its edges have ended.
// 2. So no node ends before the source of an edge of its own: over an early one
//    because each of its threads waits, over another because it begins later.
// 3. By 2, along any path: when the end of the path has ended, all nodes of the
//    path have. By 1, when a node does something, the source of its last edge
//    has ended, and with it all that paths through that source come from.
// In Q -> P -> C with both edges early, C waits for P alone; that P has ended
// says that P waited for Q. It would not, if P had an edge of which it does not
// wait for the source: hence "no other". Where P is not a kernel that waits,
// the edge to it is not early, and 2 holds by its beginning.
//
// CUDA may give a library's call programmatic edges that are not known here, to
// those of its kernels that the library launches with
// PROGRAMMATIC_STREAM_SERIALIZATION, from kernels before the call. 1 and 2 hold
// for such a kernel, too: that it waits is the library's part of the bargain,
// or what it does would be wrong in every stream, as would be what follows it
// there. It may have several edges: one wait is for the sources of all that are
// programmatic, and it begins after those of the others have ended. Whatever
// follows the call has whole edges from its end.

/// Proves what 1 says of early edges.
Result<void> proveEarly(const Dag &dag, std::span<const NodeId> dagNodes,
                        std::span<const GraphEdge> edges,
                        std::span<const GraphEdge> early,
                        const EarlyNodes &earlyNodes) {
  std::vector<uint32_t> numEdges(dagNodes.size(), 0);
  for (const GraphEdge &edge : edges)
    if (edge.second < numEdges.size())
      ++numEdges[edge.second];
  for (const GraphEdge &edge : early) {
    // They are sorted so.
    auto at = std::lower_bound(edges.begin(), edges.end(), edge,
                               [](const GraphEdge &a, const GraphEdge &b) {
                                 return std::pair(a.second, a.first) <
                                        std::pair(b.second, b.first);
                               });
    if (at == edges.end() || *at != edge || edge.first >= dagNodes.size() ||
        edge.second >= dagNodes.size())
      return broken("an edge over which a node begins early is not there");
    const DagNode &from = dag.node(dagNodes[edge.first]);
    const DagNode &to = dag.node(dagNodes[edge.second]);
    const std::string &name = to.name;
    if (!earlyNodes.isLaunch(dag, from) || !earlyNodes.isLaunch(dag, to))
      return broken(fmt::format("node '{}' begins before '{}' has ended, and "
                                "they are not both kernels",
                                name, from.name));
    if (!earlyNodes.waits(dag, to))
      return broken(fmt::format("node '{}' begins before '{}' has ended, for "
                                "which its kernel does not wait",
                                name, from.name));
    if (numEdges[edge.second] != 1)
      return broken(fmt::format("node '{}' begins early and has {} edges", name,
                                numEdges[edge.second]));
  }
  return {};
}

/// The proof, in the order of its members: each needs what those before found.
class Proof {
public:
  Proof(const Plan &plan, const Dag &dag, std::span<const NodeId> dagNodes,
        std::span<const GraphEdge> edges, const GraphPart &part)
      : plan(plan), dag(dag), dagNodes(dagNodes), edges(edges), part(part),
        graphNode(dag.nodes.size(), absent), places(dagNodes.size()) {}

  Result<void> nodesAreThePhase(Phase phase);
  void findPlaces();
  Result<void> streamsAreChains();
  Result<void> communicationsFollow() const;
  Result<void> edgesAreKept() const;

private:
  static constexpr uint32_t absent = UINT32_MAX;

  const std::string &nameOf(uint32_t node) const {
    return dag.node(dagNodes[node]).name;
  }
  /// The graph node of a step, absent where the graph has none.
  uint32_t nodeOf(const PlanStep &step) const {
    return step.node.value < graphNode.size() ? graphNode[step.node.value]
                                              : absent;
  }
  bool isAfter(uint32_t to, uint32_t from) const {
    auto [chain, place] = places[from].front();
    return from < to && clocks[to * chainLength.size() + chain] >= place;
  }

  const Plan &plan;
  const Dag &dag;
  std::span<const NodeId> dagNodes;
  std::span<const GraphEdge> edges;
  const GraphPart &part;
  std::vector<uint32_t> graphNode;   ///< by NodeId
  std::vector<uint32_t> chainLength; ///< of each stream that is here
  /// Where each graph node stands in the chains: (chain, place from 1 on).
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> places;
  std::vector<uint32_t> clocks; ///< how far its past reaches along each chain
};

Result<void> Proof::nodesAreThePhase(Phase phase) {
  for (uint32_t g = 0; g < dagNodes.size(); ++g) {
    NodeId id = dagNodes[g];
    if (id.value >= dag.nodes.size() || graphNode[id.value] != absent)
      return broken(fmt::format("graph node {} repeats a node", g));
    graphNode[id.value] = g;
  }
  for (uint32_t n = 0; n < dag.nodes.size(); ++n)
    if ((dag.nodes[n].phase == phase && part.takesPart(dag.nodes[n])) !=
        (graphNode[n] != absent))
      return broken(
          fmt::format("node '{}' is {}", dag.nodes[n].name,
                      graphNode[n] == absent ? "missing" : "of another phase"));
  return {};
}

void Proof::findPlaces() {
  // Messages are a chain, too: the host's end of one has no stream.
  const PlanStream messages{DeviceId{INT32_MAX}, {0}};
  std::map<PlanStream, uint32_t> chainOf;
  for (const PlanStep &step : plan.steps) {
    const uint32_t node = nodeOf(step);
    if (node == absent)
      continue;
    std::vector<PlanStream> streams = step.streams;
    std::erase_if(streams, [&](const PlanStream &stream) {
      return !part.holds(stream.device);
    });
    if (part.hasOwnHost() && part.isCommunication(dag.node(step.node)))
      streams.push_back(messages);
    for (const PlanStream &stream : streams) {
      auto [entry, fresh] =
          chainOf.try_emplace(stream, uint32_t(chainLength.size()));
      if (fresh)
        chainLength.push_back(0);
      places[node].push_back({entry->second, ++chainLength[entry->second]});
    }
  }
}

/// By the edges alone. That a node's past is the whole chain up to there
/// follows from finding, at each node, its chain predecessors in its past.
Result<void> Proof::streamsAreChains() {
  const size_t chains = chainLength.size();
  clocks.assign(dagNodes.size() * chains, 0);
  auto edge = edges.begin();
  for (uint32_t g = 0; g < dagNodes.size(); ++g) {
    uint32_t *mine = clocks.data() + g * chains;
    for (; edge != edges.end() && edge->second == g; ++edge) {
      if (edge->first >= g)
        return broken(fmt::format("an edge leads back from graph node {} to {}",
                                  edge->first, g));
      const uint32_t *theirs = clocks.data() + edge->first * chains;
      for (size_t c = 0; c < chains; ++c)
        mine[c] = std::max(mine[c], theirs[c]);
    }
    if (places[g].empty())
      return broken(fmt::format("node '{}' has no stream", nameOf(g)));
    for (auto [chain, place] : places[g])
      if (mine[chain] + 1 != place)
        return broken(
            fmt::format("node '{}' does not follow its stream", nameOf(g)));
    for (auto [chain, place] : places[g])
      mine[chain] = place;
  }
  if (edge != edges.end())
    return broken("its edges are not in order");
  return {};
}

Result<void> Proof::communicationsFollow() const {
  // The communications before, by the members of their communicator.
  std::vector<std::pair<std::vector<DeviceId>, uint32_t>> before;
  for (const PlanStep &step : plan.steps) {
    const uint32_t node = nodeOf(step);
    if (node == absent || part.hasOwnHost() ||
        !part.isCommunication(dag.node(step.node)))
      continue;
    std::vector<DeviceId> members = communicatorOf(dag, dag.node(step.node));
    bool isKnown = false;
    for (auto &[others, last] : before) {
      if (shareTwoRanks(members, others) && !isAfter(node, last))
        return broken(fmt::format("communication '{}' does not follow '{}'",
                                  nameOf(node), nameOf(last)));
      if (others == members) {
        last = node;
        isKnown = true;
      }
    }
    if (!isKnown)
      before.push_back({std::move(members), node});
  }
  return {};
}

Result<void> Proof::edgesAreKept() const {
  for (const DepEdge &dep : dag.edges) {
    if (dep.from.value >= dag.nodes.size() || dep.to.value >= dag.nodes.size())
      return broken("an edge of the DAG names a node that does not exist");
    uint32_t from = graphNode[dep.from.value], to = graphNode[dep.to.value];
    if (from == absent || to == absent)
      continue;
    if (!isAfter(to, from))
      return broken(fmt::format("node '{}' does not wait for '{}'",
                                dag.node(dep.to).name,
                                dag.node(dep.from).name));
  }
  return {};
}

} // namespace

Result<void> proveGraph(const Plan &plan, const Dag &dag, Phase phase,
                        std::span<const NodeId> dagNodes,
                        std::span<const GraphEdge> edges, const GraphPart &part,
                        std::span<const GraphEdge> early,
                        const EarlyNodes &earlyNodes) {
  Proof proof(plan, dag, dagNodes, edges, part);
  MGPU_TRY(proof.nodesAreThePhase(phase));
  MGPU_TRY(proveEarly(dag, dagNodes, edges, early, earlyNodes));
  proof.findPlaces();
  MGPU_TRY(proof.streamsAreChains());
  MGPU_TRY(proof.communicationsFollow());
  return proof.edgesAreKept();
}

} // namespace mgpu::capture
