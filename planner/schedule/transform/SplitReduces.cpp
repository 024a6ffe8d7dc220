// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

namespace mgpu::planner {

// Each element is summed by one rank, in rank order as before, and copied to
// the others.
uint32_t splitReduces(Dag &dag) {
  uint32_t changes = 0;
  std::vector<DagNode> nodes;
  for (const DagNode &node : dag.nodes) {
    nodes.push_back(node);
    auto *call = std::get_if<CollectiveCall>(&nodes.back().work);
    if (!call || call->kind != CollectiveKind::AllReduce || node.durationUs ||
        call->members.size() < 2)
      continue;
    size_t ranks = call->members.size();
    CollectiveCall gather = *call;
    gather.kind = CollectiveKind::AllGather;
    bool divides = true;
    for (size_t rank = 0; rank < ranks && divides; ++rank) {
      CollectiveMember &member = gather.members[rank];
      std::optional<Box> part = partOf(member.recvBox, rank, ranks);
      divides = part && member.sendBox.isContiguous();
      if (divides) {
        member.send = member.recv;
        member.sendBox = *part;
      }
    }
    if (!divides)
      continue;
    call->kind = CollectiveKind::ReduceScatter;
    for (size_t rank = 0; rank < ranks; ++rank)
      call->members[rank].recvBox = gather.members[rank].sendBox;
    DagNode second = node;
    second.name += ".gather";
    second.uses = usesOf(gather);
    second.work = std::move(gather);
    nodes.back().uses = usesOf(*call);
    nodes.back().name += ".scatter";
    nodes.push_back(std::move(second));
    ++changes;
  }
  if (changes > 0)
    replaceNodes(dag, std::move(nodes));
  return changes;
}

} // namespace mgpu::planner
