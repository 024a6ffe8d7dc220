// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include "support/Types.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <queue>

namespace mgpu::planner {

namespace {

// Buffers start at multiples of this in an arena; so do the parts of a bucket.
constexpr int64_t partAlignment = 256;

int64_t aligned(int64_t bytes) {
  return (bytes + partAlignment - 1) / partAlignment * partAlignment;
}

class Bucketing {
public:
  explicit Bucketing(Rewriting rewriting)
      : rewriting(rewriting), dag(rewriting.dag),
        lasting(dag.buffers.size(), false) {
    for (const DagNode &node : dag.nodes)
      for (const BufferUse &use : node.uses)
        if (node.phase != Phase::Replay)
          lasting[use.buffer.value] = true;
  }

  uint32_t run() {
    uint32_t changes = 0;
    for (uint32_t seed = 0; seed < dag.nodes.size(); ++seed) {
      std::string why;
      if (!candidate(seed, why)) {
        if (!why.empty())
          rewriting.left.add(dag, seed, std::move(why));
        continue;
      }
      std::vector<uint32_t> bucket = collect(seed);
      if (bucket.size() < 2) {
        rewriting.left.add(dag, seed,
                           "no other small all_reduce is independent of it and "
                           "alike");
        continue;
      }
      merge(bucket, changes);
      ++changes;
      // What took the seed's place may begin a bucket of its own.
      --seed;
    }
    return changes;
  }

private:
  std::optional<ReduceFacts> candidate(uint32_t node, std::string &why) const {
    std::optional<ReduceFacts> facts = reduceOf(dag, dag.nodes[node], why);
    if (!facts)
      return std::nullopt;
    if (facts->bytes > bucketMemberBytes)
      why = fmt::format("it has more than {} bytes", bucketMemberBytes);
    else if (auto *call = std::get_if<CollectiveCall>(&dag.nodes[node].work);
             call && (dag.nodes[node].phase != Phase::Replay ||
                      !std::all_of(call->members.begin(), call->members.end(),
                                   [&](const CollectiveMember &member) {
                                     return canMove(member.send, member.sendBox,
                                                    *facts) &&
                                            canMove(member.recv, member.recvBox,
                                                    *facts);
                                   })))
      why = "its buffers are not its own alone";
    if (!why.empty())
      return std::nullopt;
    return facts;
  }
  /// Whether a buffer can become a part of another: all of it is sent or
  /// received, by all ranks alike, and nothing outside a replay looks at it.
  bool canMove(BufferId id, const Box &box, const ReduceFacts &facts) const {
    const Buffer &buffer = dag.buffer(id);
    return buffer.role == BufferRole::Temporary && !lasting[id.value] &&
           isWhole(box, buffer) && buffer.sizeBytes > 0 &&
           buffer.sizeBytes == facts.bytes;
  }

  static bool isInPlace(const CollectiveMember &member) {
    return member.send == member.recv;
  }
  static bool alike(const CollectiveCall &a, const CollectiveCall &b) {
    if (a.communicator != b.communicator || a.reduction != b.reduction ||
        a.elementType != b.elementType || a.members.size() != b.members.size())
      return false;
    for (size_t rank = 0; rank < a.members.size(); ++rank) {
      const CollectiveMember &x = a.members[rank], &y = b.members[rank];
      bool apart = x.send != y.send && x.recv != y.recv && x.send != y.recv &&
                   x.recv != y.send;
      if (x.device != y.device || isInPlace(x) != isInPlace(y) || !apart)
        return false;
    }
    return true;
  }
  bool alike(uint32_t a, uint32_t b) const {
    const DagNode &x = dag.nodes[a], &y = dag.nodes[b];
    auto *mine = std::get_if<CollectiveCall>(&x.work),
         *theirs = std::get_if<CollectiveCall>(&y.work);
    if (mine && theirs)
      return alike(*mine, *theirs);
    return !mine && !theirs && x.devices == y.devices && x.phase == y.phase &&
           x.durationUs.has_value() == y.durationUs.has_value() &&
           std::get<OpaqueCall>(x.work).group ==
               std::get<OpaqueCall>(y.work).group;
  }

  /// The seed and later ones that no path leads to from a member. The order of
  /// a communicator is the new DAG's to choose: its edges count for nothing.
  std::vector<uint32_t> collect(uint32_t seed) const {
    std::string why;
    std::vector<uint32_t> bucket{seed};
    uint64_t bytes = candidate(seed, why)->bytes;
    std::vector<bool> reached(dag.nodes.size(), false);
    reached[seed] = true;
    // Edges are sorted by target, so one walk over them reaches everything;
    // members join on the way, before the edges that leave them.
    auto edge = dag.edges.begin();
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      bool hit = false;
      for (; edge != dag.edges.end() && edge->to.value == i; ++edge)
        hit = hit ||
              (edge->kind != DepKind::Collective && reached[edge->from.value]);
      reached[i] = reached[i] || hit;
      if (i <= seed || hit)
        continue;
      std::optional<ReduceFacts> facts = candidate(i, why);
      if (!facts || bytes + facts->bytes > bucketBytes ||
          !std::all_of(bucket.begin(), bucket.end(),
                       [&](uint32_t m) { return alike(m, i); }))
        continue;
      bucket.push_back(i);
      bytes += facts->bytes;
      reached[i] = true;
    }
    return bucket;
  }

  void merge(const std::vector<uint32_t> &bucket, uint32_t number) {
    const bool ofProgram =
        std::holds_alternative<CollectiveCall>(dag.nodes[bucket[0]].work);
    std::map<uint32_t, NewPlace> places;
    DagNode merged =
        ofProgram ? mergeCalls(bucket, number, places) : mergeFile(bucket);
    std::vector<NewNode> nodes = reorder(bucket, std::move(merged));
    if (ofProgram)
      for (NewNode &each : nodes)
        moveBuffers(each.node, [&](BufferId id) -> std::optional<NewPlace> {
          auto it = places.find(id.value);
          return it == places.end() ? std::nullopt
                                    : std::optional<NewPlace>(it->second);
        });
    for (const auto &[old, place] : places) {
      dag.buffers[old].sizeBytes = 0;
      dag.buffers[old].shape = {0};
    }
    replaceNodes(dag, std::move(nodes));
  }

  /// One call over new buffers, of which those of the members become parts.
  DagNode mergeCalls(const std::vector<uint32_t> &bucket, uint32_t number,
                     std::map<uint32_t, NewPlace> &places) {
    CollectiveCall merged = std::get<CollectiveCall>(dag.nodes[bucket[0]].work);
    const uint32_t width = sizeBytes(merged.elementType);
    for (size_t rank = 0; rank < merged.members.size(); ++rank) {
      auto gather = [&](bool sends) {
        const BufferId id = addBuffer(
            dag,
            fmt::format("bucket{}.{}{}", number, sends ? "send" : "recv", rank),
            merged.members[rank].device, 0);
        lasting.push_back(false);
        int64_t offset = 0;
        for (uint32_t m : bucket) {
          const CollectiveMember &member =
              std::get<CollectiveCall>(dag.nodes[m].work).members[rank];
          const BufferId old = sends ? member.send : member.recv;
          places[old.value] = {id, offset};
          dag.buffers[id.value].sizeBytes =
              uint64_t(offset) + dag.buffer(old).sizeBytes;
          offset = aligned(int64_t(dag.buffer(id).sizeBytes));
        }
        Buffer &buffer = dag.buffers[id.value];
        buffer.elementType = merged.elementType;
        buffer.shape = {int64_t(buffer.sizeBytes / width)};
        return id;
      };
      CollectiveMember &member = merged.members[rank];
      const bool inPlace = isInPlace(member);
      const BufferId send = gather(true), recv = inPlace ? send : gather(false);
      const int64_t count = int64_t(dag.buffer(send).sizeBytes) / width;
      const Box box{0, {count}, {int64_t(width)}, width};
      member = {member.device, send, recv, box, box};
    }
    DagNode node = mergedNode(bucket);
    node.uses = usesOf(merged);
    node.work = std::move(merged);
    return node;
  }

  /// A file's all_reduces that start with one launch, each with its buffers.
  DagNode mergeFile(const std::vector<uint32_t> &bucket) const {
    DagNode node = mergedNode(bucket);
    auto &call = std::get<OpaqueCall>(node.work);
    call.bytes = node.outBytes = 0;
    node.uses.clear();
    std::vector<const DagNode *> members;
    for (uint32_t m : bucket) {
      const DagNode &member = dag.nodes[m];
      members.push_back(&member);
      call.bytes += std::get<OpaqueCall>(member.work).bytes;
      node.outBytes += member.outBytes;
      for (const BufferUse &use : member.uses)
        if (std::find(node.uses.begin(), node.uses.end(), use) ==
            node.uses.end())
          node.uses.push_back(use);
    }
    node.durationUs = frozenPrice(rewriting, members, node);
    return node;
  }

  /// The first member's, but for its name and what-if.
  DagNode mergedNode(const std::vector<uint32_t> &bucket) const {
    DagNode node = dag.nodes[bucket[0]];
    node.name = fmt::format("{}.bucket{}", node.name, bucket.size());
    double weighted = 0, bytes = 0;
    for (uint32_t m : bucket) {
      std::string why;
      const auto share = double(candidate(m, why)->bytes);
      weighted += share * dag.nodes[m].timeFactor;
      bytes += share;
    }
    node.timeFactor = weighted / bytes;
    return node;
  }

  /// Program order with the members as one node: each time the first node whose
  /// predecessors are all done.
  std::vector<NewNode> reorder(const std::vector<uint32_t> &bucket,
                               DagNode merged) const {
    uint32_t n = uint32_t(dag.nodes.size()), last = bucket.back();
    std::vector<uint32_t> standsFor(n);
    for (uint32_t i = 0; i < n; ++i)
      standsFor[i] = i;
    for (uint32_t m : bucket)
      standsFor[m] = last;
    std::vector<std::vector<uint32_t>> after(n);
    std::vector<uint32_t> missing(n, 0);
    for (const DepEdge &edge : dag.edges) {
      uint32_t from = standsFor[edge.from.value], to = standsFor[edge.to.value];
      if (edge.kind == DepKind::Collective || from == to)
        continue;
      after[from].push_back(to);
      ++missing[to];
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t i = 0; i < n; ++i)
      if (standsFor[i] == i && missing[i] == 0)
        ready.push(i);
    std::vector<NewNode> nodes;
    while (!ready.empty()) {
      uint32_t node = ready.top();
      ready.pop();
      if (node == last)
        nodes.push_back({merged, bucket});
      else
        nodes.push_back({dag.nodes[node], {node}});
      for (uint32_t next : after[node])
        if (--missing[next] == 0)
          ready.push(next);
    }
    return nodes;
  }

  Rewriting rewriting;
  Dag &dag;
  std::vector<bool> lasting; ///< used while loading or fetching
};

} // namespace

uint32_t bucketReduces(Rewriting rewriting) {
  return Bucketing(rewriting).run();
}

} // namespace mgpu::planner
