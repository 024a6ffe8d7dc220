// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

namespace {

/// The two halves that an all_reduce becomes. Each element is summed by one
/// rank, in rank order as before, and copied to the others.
struct Halves {
  DagNode scatter, gather;
};

} // namespace

static std::optional<Halves> halvesOf(const DagNode &node,
                                      const CollectiveCall &call) {
  const size_t ranks = call.members.size();
  CollectiveCall scatter = call, gather = call;
  scatter.kind = CollectiveKind::ReduceScatter;
  gather.kind = CollectiveKind::AllGather;
  for (size_t rank = 0; rank < ranks; ++rank) {
    CollectiveMember &member = gather.members[rank];
    std::optional<Box> part = partOf(member.recvBox, rank, ranks);
    if (!part || !member.sendBox.isContiguous())
      return std::nullopt;
    scatter.members[rank].recvBox = *part;
    member.send = member.recv;
    member.sendBox = std::move(*part);
  }
  Halves halves{node, node};
  halves.scatter.uses = usesOf(scatter);
  halves.scatter.work = std::move(scatter);
  halves.gather.uses = usesOf(gather);
  halves.gather.work = std::move(gather);
  return halves;
}

/// In a file the part of a rank gets a buffer.
static std::optional<Halves> halvesOf(const Dag &dag, NewBuffers &buffers,
                                      uint32_t i, const OpaqueCall &call,
                                      uint32_t ranks) {
  const DagNode &node = dag.nodes[i];
  if (call.bytes % ranks != 0)
    return std::nullopt;
  const uint64_t bytes = call.bytes / ranks;
  Halves halves{node, node};
  std::get<OpaqueCall>(halves.scatter.work).kind =
      CollectiveKind::ReduceScatter;
  std::get<OpaqueCall>(halves.gather.work).kind = CollectiveKind::AllGather;
  halves.scatter.outBytes = bytes;
  std::erase_if(halves.scatter.uses,
                [](const BufferUse &use) { return !use.reads; });
  std::erase_if(halves.gather.uses,
                [](const BufferUse &use) { return !use.writes; });
  for (BufferUse &use : halves.scatter.uses)
    use.writes = false;
  for (BufferUse &use : halves.gather.uses)
    use.reads = false;
  const BufferId part = buffers.add(fmt::format("{}:{}.part", i, node.name),
                                    node.devices.front(), bytes);
  const Box all = Box::flat(0, int64_t(bytes));
  halves.scatter.uses.push_back({part, all, false, true});
  halves.gather.uses.push_back({part, all, true, false});
  return halves;
}

Transformed splitReduces(const Rewriting &rewriting) {
  const Dag &dag = rewriting.dag;
  NewBuffers buffers(dag);
  uint32_t changes = 0;
  std::vector<NewNode> nodes;
  nodes.reserve(dag.nodes.size());
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    std::string why;
    std::optional<Halves> halves;
    if (auto facts = reduceOf(dag, dag.nodes[i], why)) {
      const auto *call = std::get_if<CollectiveCall>(&dag.nodes[i].work);
      if (call)
        halves = halvesOf(dag.nodes[i], *call);
      else if (!outputOf(dag.nodes[i]) || dag.nodes[i].outBytes != facts->bytes)
        why = "its output is not what it reduces";
      else
        halves =
            halvesOf(dag, buffers, i, std::get<OpaqueCall>(dag.nodes[i].work),
                     facts->ranks);
      if (!halves && why.empty())
        why = "its bytes do not divide by its ranks";
    }
    if (!why.empty())
      rewriting.left.add(dag, i, std::move(why));
    if (!halves) {
      nodes.push_back(i);
      continue;
    }
    for (auto [half, suffix] : {std::pair(&halves->scatter, ".scatter"),
                                std::pair(&halves->gather, ".gather")}) {
      const DagNode *const was[] = {&dag.nodes[i]};
      half->name += suffix;
      half->durationUs = frozenPrice(rewriting, was, *half);
      nodes.emplace_back(std::move(*half), std::vector{i});
    }
    ++changes;
  }
  if (changes == 0)
    return {};
  return {changes, replaceNodes(dag, buffers, std::move(nodes))};
}

} // namespace mgpu::planner
