// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include "planner/dag/Rows.h"
#include "support/Types.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <queue>

namespace mgpu::planner {

namespace {

// Buffers start at multiples of this in an arena; so do the parts of a bucket.
constexpr int64_t partAlignment = 256;

// How many groups behind its first member a bucket is filled from, so that
// buckets of a long program take no more time each than those of a short one.
constexpr size_t farthestMember = 20'000;

int64_t aligned(int64_t bytes) {
  return (bytes + partAlignment - 1) / partAlignment * partAlignment;
}

/// Which nodes run as one, and an order that they can run in. A group has the
/// number of its last member.
class Groups {
public:
  explicit Groups(const Dag &dag) : members(dag.nodes.size()) {
    for (uint32_t i = 0; i < members.size(); ++i) {
      members[i] = {i};
      order.push_back(i);
    }
    // The order of a communicator is the new DAG's to choose.
    for (const DepEdge &edge : dag.edges)
      if (edge.kind != DepKind::Collective)
        edges.push_back({edge.from.value, edge.to.value});
    connect();
  }

  std::span<const uint32_t> needs(uint32_t group) const {
    return before[group];
  }

  /// Groups that no path joins become one. Then each time the first whose
  /// predecessors are all done is next.
  void join(const std::vector<uint32_t> &bucket) {
    std::vector<uint32_t> standsFor(members.size()), places(members.size());
    std::iota(standsFor.begin(), standsFor.end(), 0u);
    const uint32_t last = bucket.back();
    for (uint32_t member : bucket)
      standsFor[member] = last;
    members[last] = bucket;
    for (auto &[from, to] : edges) {
      from = standsFor[from];
      to = standsFor[to];
    }
    connect();
    std::erase_if(order,
                  [&](uint32_t group) { return standsFor[group] != group; });
    for (uint32_t k = 0; k < order.size(); ++k)
      places[order[k]] = k;
    sortAgain(places);
  }

  std::vector<std::vector<uint32_t>> members; ///< by group, in order
  std::vector<uint32_t> order;                ///< the groups there are

private:
  void connect() {
    const uint32_t count = uint32_t(members.size());
    after = Rows<uint32_t>(count, edges);
    std::vector<Rows<uint32_t>::Entry> turned;
    for (auto [from, to] : edges)
      turned.push_back({to, from});
    before = Rows<uint32_t>(count, turned);
  }

  /// `places` of the groups before.
  void sortAgain(const std::vector<uint32_t> &places) {
    std::vector<size_t> missing(members.size());
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    const std::vector<uint32_t> was = std::exchange(order, {});
    for (uint32_t group : was)
      if ((missing[group] = before[group].size()) == 0)
        ready.push(places[group]);
    while (!ready.empty()) {
      const uint32_t group = was[ready.top()];
      ready.pop();
      order.push_back(group);
      for (uint32_t next : after[group])
        if (--missing[next] == 0)
          ready.push(places[next]);
    }
  }

  std::vector<Rows<uint32_t>::Entry> edges; ///< from, to
  Rows<uint32_t> before, after;             ///< by group
};

class Bucketing {
public:
  explicit Bucketing(const Rewriting &rewriting)
      : rewriting(rewriting), dag(rewriting.dag), buffers(dag), groups(dag),
        lasting(dag.buffers.size(), false) {
    for (const DagNode &node : dag.nodes)
      for (const BufferUse &use : node.uses)
        if (node.phase != Phase::Replay)
          lasting[use.buffer.value] = true;
  }

  Transformed run() {
    std::vector<uint32_t> merged; // groups
    for (uint32_t at = 0; at < groups.order.size(); ++at) {
      const uint32_t seed = groups.order[at];
      std::string why;
      if (groups.members[seed].size() > 1 || !candidate(seed, why)) {
        if (!why.empty())
          rewriting.left.add(dag, seed, std::move(why));
        continue;
      }
      std::vector<uint32_t> bucket = collect(at);
      if (bucket.size() < 2) {
        rewriting.left.add(dag, seed,
                           "no other small all_reduce is independent of it and "
                           "alike");
        continue;
      }
      merged.push_back(bucket.back());
      keep(bucket);
      groups.join(bucket);
      // The node that took the seed's place may begin a bucket of its own.
      --at;
    }
    if (merged.empty())
      return {};
    return {uint32_t(merged.size()), rewrite(merged)};
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

  /// The group at a place and later ones that no path leads to from a member:
  /// of those that are not far.
  std::vector<uint32_t> collect(uint32_t at) const {
    const uint32_t seed = groups.order[at];
    std::string why;
    std::vector<uint32_t> bucket{seed};
    uint64_t bytes = candidate(seed, why)->bytes;
    std::vector<bool> reached(dag.nodes.size(), false);
    reached[seed] = true;
    const size_t end = std::min(groups.order.size(), at + 1 + farthestMember);
    for (size_t k = at + 1; k < end; ++k) {
      const uint32_t group = groups.order[k];
      for (uint32_t before : groups.needs(group))
        reached[group] = reached[group] || reached[before];
      if (reached[group] || groups.members[group].size() > 1)
        continue;
      std::optional<ReduceFacts> facts = candidate(group, why);
      if (!facts || bytes + facts->bytes > bucketBytes ||
          !std::all_of(bucket.begin(), bucket.end(),
                       [&](uint32_t m) { return alike(m, group); }))
        continue;
      bucket.push_back(group);
      bytes += facts->bytes;
      reached[group] = true;
    }
    return bucket;
  }

  /// Buffers of a bucket's members are no other bucket's to move.
  void keep(const std::vector<uint32_t> &bucket) {
    for (uint32_t m : bucket)
      for (const BufferUse &use : dag.nodes[m].uses)
        lasting[use.buffer.value] = true;
  }

  /// Makes one node of each group that was merged.
  Dag rewrite(const std::vector<uint32_t> &merged) {
    std::map<uint32_t, NewPlace> places;
    std::map<uint32_t, DagNode> made; // by group
    for (uint32_t number = 0; number < merged.size(); ++number) {
      const std::vector<uint32_t> &bucket = groups.members[merged[number]];
      const bool ofProgram =
          std::holds_alternative<CollectiveCall>(dag.nodes[bucket[0]].work);
      made.emplace(merged[number], ofProgram
                                       ? mergeCalls(bucket, number, places)
                                       : mergeFile(bucket));
    }
    std::vector<NewNode> nodes;
    nodes.reserve(groups.order.size());
    for (uint32_t group : groups.order)
      if (const auto node = made.find(group); node == made.end())
        nodes.push_back(group);
      else
        nodes.emplace_back(std::move(node->second), groups.members[group]);
    for (const auto &[old, place] : places)
      buffers.empty(BufferId{old});
    return replaceNodes(dag, buffers, std::move(nodes),
                        [&](BufferId id) -> std::optional<NewPlace> {
                          auto it = places.find(id.value);
                          return it == places.end()
                                     ? std::nullopt
                                     : std::optional<NewPlace>(it->second);
                        });
  }

  /// One call over new buffers, of which those of the members become parts.
  DagNode mergeCalls(const std::vector<uint32_t> &bucket, uint32_t number,
                     std::map<uint32_t, NewPlace> &places) {
    CollectiveCall merged = std::get<CollectiveCall>(dag.nodes[bucket[0]].work);
    const uint32_t width = sizeBytes(merged.elementType);
    for (size_t rank = 0; rank < merged.members.size(); ++rank) {
      auto gather = [&](bool sends) {
        const BufferId id = buffers.add(
            fmt::format("bucket{}.{}{}", number, sends ? "send" : "recv", rank),
            merged.members[rank].device, 0);
        int64_t offset = 0;
        for (uint32_t m : bucket) {
          const CollectiveMember &member =
              std::get<CollectiveCall>(dag.nodes[m].work).members[rank];
          const BufferId old = sends ? member.send : member.recv;
          places[old.value] = {id, offset};
          buffers.added(id).sizeBytes =
              uint64_t(offset) + dag.buffer(old).sizeBytes;
          offset = aligned(int64_t(buffers.added(id).sizeBytes));
        }
        Buffer &buffer = buffers.added(id);
        buffer.elementType = merged.elementType;
        buffer.shape = {int64_t(buffer.sizeBytes / width)};
        return id;
      };
      CollectiveMember &member = merged.members[rank];
      const bool inPlace = isInPlace(member);
      const BufferId send = gather(true), recv = inPlace ? send : gather(false);
      const int64_t count = int64_t(buffers.added(send).sizeBytes) / width;
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
      const auto share = double(reduceOf(dag, dag.nodes[m], why)->bytes);
      weighted += share * dag.nodes[m].timeFactor;
      bytes += share;
    }
    node.timeFactor = weighted / bytes;
    return node;
  }

  const Rewriting &rewriting;
  const Dag &dag;
  NewBuffers buffers;
  Groups groups;
  std::vector<bool> lasting; ///< by buffer: not to be moved
};

} // namespace

Transformed bucketReduces(const Rewriting &rewriting) {
  return Bucketing(rewriting).run();
}

} // namespace mgpu::planner
