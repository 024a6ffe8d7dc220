// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/DagBuilder.h"

#include <algorithm>
#include <tuple>

namespace mgpu::planner {

static DepKind conflictKind(const BufferUse &earlier, const BufferUse &later) {
  if (earlier.writes && later.reads)
    return DepKind::Data;
  return earlier.reads ? DepKind::Anti : DepKind::Output;
}

void DependencyTracker::findConflicts(NodeId id, const BufferUse &use) {
  auto [begin, end] = use.box.byteRange();
  auto visit = [&](int64_t, int64_t, const LiveUse &live) {
    // The whole earlier box is compared even where part of it is covered: the
    // edge is then implied anyway, and never wrong.
    const BufferUse &earlier = useOf(live);
    if (overlap(earlier.box, use.box) != Overlap::None)
      found.push_back({live.node, id, conflictKind(earlier, use)});
    return true;
  };
  BufferState &state = buffers[use.buffer.value];
  state.writes.meet(begin, end, visit);
  if (use.writes)
    state.reads.meet(begin, end, visit);
}

// A later conflict with covered bytes is a conflict with `use` as well, whose
// node already follows the covered one.
void DependencyTracker::retireCovered(const BufferUse &use) {
  auto [begin, end] = use.box.byteRange();
  bool dense = use.box.isContiguous();
  BufferState &state = buffers[use.buffer.value];
  for (IntervalIndex<LiveUse> *index : {&state.writes, &state.reads}) {
    std::vector<std::tuple<int64_t, int64_t, LiveUse>> rest;
    index->meet(begin, end,
                [&, begin = begin, end = end](
                    int64_t liveBegin, int64_t liveEnd, const LiveUse &live) {
                  if (!dense)
                    return !(useOf(live).box == use.box);
                  bool inside = begin <= liveBegin && liveEnd <= end;
                  if (!inside && !live.dense)
                    return true;
                  if (liveBegin < begin)
                    rest.emplace_back(liveBegin, begin, live);
                  if (end < liveEnd)
                    rest.emplace_back(end, liveEnd, live);
                  return false;
                });
    for (auto &[restBegin, restEnd, live] : rest)
      index->insert(restBegin, restEnd, live);
  }
}

NodeId DependencyTracker::append(DagNode node, std::span<const NodeId> after) {
  dag.nodes.push_back(std::move(node));
  return connectLast(after);
}

NodeId DependencyTracker::share(const Dag &other, NodeId id,
                                std::span<const NodeId> after) {
  dag.nodes.share(other.nodes, id.value);
  return connectLast(after);
}

/// Finds what the last node must follow.
NodeId DependencyTracker::connectLast(std::span<const NodeId> after) {
  const NodeId id{uint32_t(dag.nodes.size() - 1)};
  const DagNode &node = dag.node(id);
  if (buffers.size() < dag.buffers.size())
    buffers.resize(dag.buffers.size());

  found.clear();
  for (NodeId earlier : after)
    found.push_back({earlier, id, DepKind::Data});
  for (const BufferUse &use : node.uses)
    if (use.reads || use.writes)
      findConflicts(id, use);
  if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    auto [it, first] = lastOnCommunicator.try_emplace(call->communicator, id);
    if (!first)
      found.push_back({it->second, id, DepKind::Collective});
    it->second = id;
  }
  std::sort(found.begin(), found.end(), [](const DepEdge &a, const DepEdge &b) {
    return std::tie(a.from, a.kind) < std::tie(b.from, b.kind);
  });
  for (const DepEdge &edge : found)
    if (dag.edges.empty() || dag.edges.back().to != id ||
        dag.edges.back().from != edge.from)
      dag.edges.push_back(edge);

  // All uses of the node see the state before it, so it retires first.
  for (const BufferUse &use : node.uses)
    if (use.writes)
      retireCovered(use);
  for (uint32_t k = 0; k < node.uses.size(); ++k) {
    const BufferUse &use = node.uses[k];
    if (!use.reads && !use.writes)
      continue;
    auto [begin, end] = use.box.byteRange();
    BufferState &state = buffers[use.buffer.value];
    (use.writes ? state.writes : state.reads)
        .insert(begin, end, {id, k, use.box.isContiguous()});
  }
  return id;
}

} // namespace mgpu::planner
