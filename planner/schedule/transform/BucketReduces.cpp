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
  explicit Bucketing(Dag &dag) : dag(dag), lasting(dag.buffers.size(), false) {
    for (const DagNode &node : dag.nodes)
      for (const BufferUse &use : node.uses)
        if (node.phase != Phase::Replay)
          lasting[use.buffer.value] = true;
  }

  uint32_t run() {
    uint32_t changes = 0;
    for (uint32_t seed = 0; seed < dag.nodes.size(); ++seed) {
      std::vector<uint32_t> bucket = collect(seed);
      if (bucket.size() < 2)
        continue;
      merge(bucket, changes);
      ++changes;
      // What took the seed's place may begin a bucket of its own.
      --seed;
    }
    return changes;
  }

private:
  const CollectiveCall *candidate(uint32_t node) const {
    auto *call = std::get_if<CollectiveCall>(&dag.nodes[node].work);
    if (!call || call->kind != CollectiveKind::AllReduce ||
        call->members.size() < 2 || dag.nodes[node].phase != Phase::Replay ||
        dag.nodes[node].durationUs ||
        uint64_t(bytesOf(call->members[0].sendBox)) > bucketMemberBytes)
      return nullptr;
    for (const CollectiveMember &member : call->members)
      for (auto [id, box] : {std::pair(member.send, &member.sendBox),
                             std::pair(member.recv, &member.recvBox)}) {
        const Buffer &buffer = dag.buffer(id);
        if (buffer.role != BufferRole::Temporary || lasting[id.value] ||
            !isWhole(*box, buffer) || buffer.sizeBytes == 0 ||
            buffer.sizeBytes != dag.buffer(call->members[0].send).sizeBytes)
          return nullptr;
      }
    return call;
  }
  static bool isInPlace(const CollectiveMember &member) {
    return member.send == member.recv;
  }
  bool alike(const CollectiveCall &a, const CollectiveCall &b) const {
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

  /// The seed and later ones that no path leads to from a member. The order of
  /// a communicator is the new DAG's to choose: its edges count for nothing.
  std::vector<uint32_t> collect(uint32_t seed) const {
    const CollectiveCall *first = candidate(seed);
    if (!first)
      return {};
    std::vector<uint32_t> bucket{seed};
    uint64_t bytes = dag.buffer(first->members[0].send).sizeBytes;
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
      const CollectiveCall *call = candidate(i);
      if (!call)
        continue;
      uint64_t more = dag.buffer(call->members[0].send).sizeBytes;
      if (bytes + more > bucketBytes)
        continue;
      bool fits = std::all_of(bucket.begin(), bucket.end(), [&](uint32_t m) {
        return alike(*std::get_if<CollectiveCall>(&dag.nodes[m].work), *call);
      });
      if (!fits)
        continue;
      bucket.push_back(i);
      bytes += more;
      reached[i] = true;
    }
    return bucket;
  }

  void merge(const std::vector<uint32_t> &bucket, uint32_t number) {
    CollectiveCall merged = std::get<CollectiveCall>(dag.nodes[bucket[0]].work);
    uint32_t width = sizeBytes(merged.elementType);
    std::map<uint32_t, NewPlace> places;
    for (size_t rank = 0; rank < merged.members.size(); ++rank) {
      auto gather = [&](bool sends) {
        BufferId id{uint32_t(dag.buffers.size())};
        Buffer buffer;
        buffer.name =
            fmt::format("bucket{}.{}{}", number, sends ? "send" : "recv", rank);
        for (uint32_t n = 0; isTaken(buffer.name); ++n)
          buffer.name += fmt::format(".{}", n);
        buffer.device = merged.members[rank].device;
        buffer.elementType = merged.elementType;
        int64_t offset = 0;
        for (uint32_t m : bucket) {
          const CollectiveMember &member =
              std::get<CollectiveCall>(dag.nodes[m].work).members[rank];
          BufferId old = sends ? member.send : member.recv;
          places[old.value] = {id, offset};
          buffer.sizeBytes = uint64_t(offset) + dag.buffer(old).sizeBytes;
          offset = aligned(int64_t(buffer.sizeBytes));
        }
        buffer.shape = {int64_t(buffer.sizeBytes / width)};
        dag.buffers.push_back(std::move(buffer));
        lasting.push_back(false);
        return id;
      };
      CollectiveMember &member = merged.members[rank];
      bool inPlace = isInPlace(member);
      BufferId send = gather(true), recv = inPlace ? send : gather(false);
      int64_t count = int64_t(dag.buffer(send).sizeBytes) / width;
      Box box{0, {count}, {int64_t(width)}, width};
      member = {member.device, send, recv, box, box};
    }
    std::vector<DagNode> nodes = reorder(bucket, std::move(merged));
    for (DagNode &node : nodes)
      moveBuffers(node, [&](BufferId id) -> std::optional<NewPlace> {
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
  bool isTaken(const std::string &name) const {
    return std::any_of(dag.buffers.begin(), dag.buffers.end(),
                       [&](const Buffer &other) { return other.name == name; });
  }

  /// Program order with the members as one node: each time the first node whose
  /// predecessors are all done.
  std::vector<DagNode> reorder(const std::vector<uint32_t> &bucket,
                               CollectiveCall call) {
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
    DagNode merged = dag.nodes[bucket[0]];
    merged.name = fmt::format("{}.bucket{}", merged.name, bucket.size());
    double weighted = 0, bytes = 0;
    for (uint32_t m : bucket) {
      double share = double(bytesOf(
          std::get<CollectiveCall>(dag.nodes[m].work).members[0].sendBox));
      weighted += share * dag.nodes[m].timeFactor;
      bytes += share;
    }
    merged.timeFactor = weighted / bytes;
    merged.work = std::move(call);
    merged.uses = usesOf(std::get<CollectiveCall>(merged.work));
    std::vector<DagNode> nodes;
    while (!ready.empty()) {
      uint32_t node = ready.top();
      ready.pop();
      nodes.push_back(node == last ? merged : dag.nodes[node]);
      for (uint32_t next : after[node])
        if (--missing[next] == 0)
          ready.push(next);
    }
    return nodes;
  }

  Dag &dag;
  std::vector<bool> lasting; ///< used while loading or fetching
};

} // namespace

uint32_t bucketReduces(Dag &dag) { return Bucketing(dag).run(); }

} // namespace mgpu::planner
