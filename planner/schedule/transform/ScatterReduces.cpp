// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>

namespace mgpu::planner {

namespace {

struct Reader {
  uint32_t node;
  const BufferUse *use;
};

/// Whether no node after `at` reads of `whole` what is outside `part`. Bytes
/// that only some other node writes may then keep any value.
bool readsOnlyPart(const std::vector<Reader> &readers, uint32_t at,
                   const Box &whole, const Box &part) {
  auto [low, high] = part.byteRange();
  return std::all_of(readers.begin(), readers.end(), [&](const Reader &reader) {
    if (reader.node <= at || overlap(reader.use->box, whole) == Overlap::None)
      return true;
    auto [begin, end] = reader.use->box.byteRange();
    return low <= begin && end <= high;
  });
}

} // namespace

uint32_t scatterReduces(Dag &dag) {
  std::vector<std::vector<Reader>> readers(dag.buffers.size());
  std::vector<bool> lasting(dag.buffers.size(), false);
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    for (const BufferUse &use : dag.nodes[i].uses) {
      if (use.reads)
        readers[use.buffer.value].push_back({i, &use});
      if (dag.nodes[i].phase != Phase::Replay)
        lasting[use.buffer.value] = true;
    }
  uint32_t changes = 0;
  std::vector<DagNode> nodes = dag.nodes;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    auto *call = std::get_if<CollectiveCall>(&nodes[i].work);
    if (!call || call->kind != CollectiveKind::AllReduce ||
        nodes[i].durationUs || call->members.size() < 2)
      continue;
    size_t ranks = call->members.size();
    std::vector<Box> parts;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const CollectiveMember &member = call->members[rank];
      std::optional<Box> part = partOf(member.recvBox, rank, ranks);
      // What another replay, or the fetch, may read must be whole.
      bool isOurs = dag.buffer(member.recv).role == BufferRole::Temporary &&
                    !lasting[member.recv.value];
      if (!part || !isOurs || !member.sendBox.isContiguous() ||
          !readsOnlyPart(readers[member.recv.value], i, member.recvBox, *part))
        break;
      parts.push_back(std::move(*part));
    }
    if (parts.size() < ranks)
      continue;
    for (size_t rank = 0; rank < ranks; ++rank)
      call->members[rank].recvBox = parts[rank];
    call->kind = CollectiveKind::ReduceScatter;
    nodes[i].uses = usesOf(*call);
    nodes[i].name += ".scatter";
    ++changes;
  }
  if (changes > 0)
    replaceNodes(dag, std::move(nodes));
  return changes;
}

} // namespace mgpu::planner
