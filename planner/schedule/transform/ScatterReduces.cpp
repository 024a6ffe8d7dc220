// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace mgpu::planner {

namespace {

/// all_reduces of which every rank reads its own part alone. A program says so
/// by what its nodes read; a file by slices, as XLA's partitioner writes them,
/// at offsets that are looked up in a table of one entry per rank.
class Scattering {
public:
  explicit Scattering(const Rewriting &rewriting)
      : rewriting(rewriting), dag(rewriting.dag), buffers(dag),
        users(dag.buffers.size()), lasting(dag.buffers.size(), false),
        before(dag.nodes.size()), after(dag.nodes.size()),
        isGone(dag.nodes.size(), false) {
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      for (const BufferUse &use : dag.nodes[i].uses) {
        users[use.buffer.value].push_back({i, &use});
        if (dag.nodes[i].phase != Phase::Replay)
          lasting[use.buffer.value] = true;
      }
    for (const DepEdge &edge : dag.edges) {
      before[edge.to.value].push_back(edge.from.value);
      after[edge.from.value].push_back(edge.to.value);
    }
  }

  Transformed run() {
    uint32_t changes = 0;
    const uint32_t count = uint32_t(dag.nodes.size());
    for (uint32_t i = 0; i < count; ++i) {
      std::string why;
      if (auto facts = reduceOf(dag, dag.nodes[i], why))
        changes += std::holds_alternative<CollectiveCall>(dag.nodes[i].work)
                       ? changeCall(i, why)
                       : changeSliced(i, *facts, why);
      if (!why.empty())
        rewriting.left.add(dag, i, std::move(why));
    }
    if (changes == 0)
      return {};
    std::vector<NewNode> made;
    made.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (isGone[i])
        continue;
      auto node = changed.find(i);
      if (node == changed.end())
        made.push_back(i);
      else
        made.push_back(std::move(node->second));
    }
    return {changes, replaceNodes(dag, buffers, std::move(made))};
  }

private:
  struct User {
    uint32_t node;
    const BufferUse *use; ///< of the DAG as it was
  };

  /// Whether no node after `at` reads of `whole` what is outside `part`. Bytes
  /// that only some other node writes may then keep any value.
  bool readsOnlyPart(BufferId buffer, uint32_t at, const Box &whole,
                     const Box &part) const {
    auto [low, high] = part.byteRange();
    for (const User &user : users[buffer.value]) {
      if (!user.use->reads || user.node <= at ||
          overlap(user.use->box, whole) == Overlap::None)
        continue;
      auto [begin, end] = user.use->box.byteRange();
      if (begin < low || high < end)
        return false;
    }
    return true;
  }

  /// A node as it becomes.
  NewNode &changing(uint32_t i) {
    auto node = changed.find(i);
    if (node == changed.end())
      node = changed.emplace(i, NewNode(dag.nodes[i], {i})).first;
    return node->second;
  }

  bool changeCall(uint32_t i, std::string &why) {
    const auto &call = std::get<CollectiveCall>(dag.nodes[i].work);
    const size_t ranks = call.members.size();
    std::vector<Box> parts;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const CollectiveMember &member = call.members[rank];
      std::optional<Box> part = partOf(member.recvBox, rank, ranks);
      // A buffer that another replay, or the fetch, may read must be whole.
      const bool isOurs =
          dag.buffer(member.recv).role == BufferRole::Temporary &&
          !lasting[member.recv.value];
      if (!part || !isOurs || !member.sendBox.isContiguous() ||
          !readsOnlyPart(member.recv, i, member.recvBox, *part)) {
        why = "more than a rank's own part of it is read, or may be";
        return false;
      }
      parts.push_back(std::move(*part));
    }
    DagNode &node = *changing(i).node;
    auto &scatter = std::get<CollectiveCall>(node.work);
    for (size_t rank = 0; rank < ranks; ++rank)
      scatter.members[rank].recvBox = parts[rank];
    scatter.kind = CollectiveKind::ReduceScatter;
    node.uses = usesOf(scatter);
    node.name += ".scatter";
    return true;
  }

  /// A scalar that is read from a table of `ranks` like it, by a kernel that
  /// depends on nothing: on the rank alone.
  bool isRankOffset(uint32_t node, uint32_t ranks) const {
    const DagNode &offset = dag.nodes[node];
    auto *call = std::get_if<OpaqueCall>(&offset.work);
    return call && call->isSlice && before[node].empty() &&
           (offset.outBytes == 4 || offset.outBytes == 8) &&
           offset.bytesRead == offset.outBytes * ranks;
  }

  /// Why a node that reads an all_reduce is not the slice that its rank takes,
  /// or "". `offsets` are those of the slices before it.
  std::string faultOfSlice(uint32_t s, uint32_t i, const ReduceFacts &facts,
                           std::vector<uint32_t> &offsets) const {
    const DagNode &slice = dag.nodes[s];
    auto *call = std::get_if<OpaqueCall>(&slice.work);
    std::optional<BufferId> part = outputOf(slice);
    std::vector<uint32_t> others = before[s];
    std::erase(others, i);
    std::sort(others.begin(), others.end());
    // More work than an operation per byte is more than a slice.
    if (!call || call->isCollective || !call->isSlice ||
        slice.flops > double(slice.outBytes))
      return "a node that reads it is not a slice";
    if (slice.outBytes * facts.ranks != facts.bytes)
      return "a slice of it is not one part per rank";
    if (!part || part == outputOf(dag.nodes[i]) ||
        users[part->value].front().node != s)
      return "a slice of it writes where others do";
    if (others.empty() ||
        !std::all_of(others.begin(), others.end(),
                     [&](uint32_t o) { return isRankOffset(o, facts.ranks); }))
      return "that each rank takes another part is not in the file: no table "
             "of one offset per rank";
    if (!offsets.empty() && offsets != others)
      return "its slices have several offsets";
    offsets = std::move(others);
    return "";
  }

  bool isSliced(uint32_t i, const ReduceFacts &facts, std::string &why) const {
    std::optional<BufferId> whole = outputOf(dag.nodes[i]);
    if (!dag.spmd)
      why = "the file is not spmd: which part each device takes is not in it";
    else if (dag.nodes[i].outBytes != facts.bytes || !whole)
      why = "its output is not what it reduces";
    else if (after[i].empty())
      why = "its output is a result";
    else if (facts.bytes % facts.ranks != 0)
      why = "its bytes do not divide by its ranks";
    std::vector<uint32_t> offsets;
    for (uint32_t s : after[i])
      if (why.empty())
        why = faultOfSlice(s, i, facts, offsets);
    if (!why.empty())
      return false;
    // Nobody else may look at the whole.
    for (const User &user : users[whole->value])
      if (user.node != i && std::find(after[i].begin(), after[i].end(),
                                      user.node) == after[i].end()) {
        why = "its buffer is used by others";
        return false;
      }
    return true;
  }

  /// The slices go: what they would copy is what each rank receives.
  bool changeSliced(uint32_t i, const ReduceFacts &facts, std::string &why) {
    if (!isSliced(i, facts, why))
      return false;
    const uint32_t first = after[i].front();
    const BufferId whole = *outputOf(dag.nodes[i]),
                   part = *outputOf(dag.nodes[first]);
    NewNode &made = changing(i);
    DagNode &scatter = *made.node;
    std::get<OpaqueCall>(scatter.work).kind = CollectiveKind::ReduceScatter;
    scatter.name += ".scatter";
    scatter.outBytes = dag.nodes[first].outBytes;
    std::erase_if(scatter.uses, [&](const BufferUse &use) {
      return use.buffer == whole && use.writes && !use.reads;
    });
    for (BufferUse &use : scatter.uses)
      use.writes = false;
    scatter.uses.push_back(
        {part, Box::flat(0, int64_t(scatter.outBytes)), false, true});
    const DagNode *const was[] = {&dag.nodes[i]};
    scatter.durationUs = frozenPrice(rewriting, was, scatter);
    for (uint32_t s : after[i]) {
      const BufferId copy = *outputOf(dag.nodes[s]);
      if (copy != part) {
        if (dag.buffer(copy).role == BufferRole::Resident)
          buffers.keep(part);
        for (const User &user : users[copy.value])
          for (BufferUse &use : changing(user.node).node->uses)
            if (use.buffer == copy)
              use.buffer = part;
      }
      made.madeOf.push_back(s);
      isGone[s] = true;
    }
    return true;
  }

  const Rewriting &rewriting;
  const Dag &dag;
  NewBuffers buffers;
  std::vector<std::vector<User>> users; ///< by buffer, ascending
  std::vector<bool> lasting;            ///< used while loading or fetching
  std::vector<std::vector<uint32_t>> before, after; ///< by node
  std::map<uint32_t, NewNode> changed;              ///< by node
  std::vector<bool> isGone;                         ///< by node
};

} // namespace

Transformed scatterReduces(const Rewriting &rewriting) {
  return Scattering(rewriting).run();
}

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
