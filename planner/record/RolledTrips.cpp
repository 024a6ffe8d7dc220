// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/RolledTrips.h"

#include <algorithm>
#include <map>

namespace mgpu::planner {

namespace {

/// Compares the nodes of two trips. Two buffers that the trips made are one if
/// they are used at the same places.
class TripMatcher {
public:
  explicit TripMatcher(const RolledTrips &rolled) : rolled(rolled) {}

  bool matches(const DagNode &a, const DagNode &b) {
    if (a.devices != b.devices || a.work.index() != b.work.index() ||
        a.uses.size() != b.uses.size() || a.location != b.location)
      return false;
    for (size_t k = 0; k < a.uses.size(); ++k)
      if (const BufferUse &x = a.uses[k], &y = b.uses[k];
          !same(x.buffer, y.buffer) || x.box != y.box || x.reads != y.reads ||
          x.writes != y.writes)
        return false;
    if (auto *call = std::get_if<KernelCall>(&a.work))
      return matches(*call, std::get<KernelCall>(b.work));
    if (auto *call = std::get_if<CollectiveCall>(&a.work))
      return matches(*call, std::get<CollectiveCall>(b.work));
    if (auto *call = std::get_if<OpaqueCall>(&a.work))
      return *call == std::get<OpaqueCall>(b.work);
    if (auto *x = std::get_if<CopyCall>(&a.work)) {
      const auto &y = std::get<CopyCall>(b.work);
      return same(x->source, y.source) && same(x->destination, y.destination) &&
             x->sourceBox == y.sourceBox &&
             x->destinationBox == y.destinationBox;
    }
    return false;
  }
  /// The first trip's buffer that stands for `second`, if both are used.
  std::optional<BufferId> twinOf(BufferId second) const {
    auto at = twins.find(second.value);
    return at == twins.end() ? std::nullopt : std::optional(at->second);
  }

private:
  bool same(BufferId a, BufferId b) {
    if (b.value < rolled.buffers[1])
      return a == b;
    if (a.value < rolled.buffers[0] || a.value >= rolled.buffers[1])
      return false;
    return twins.try_emplace(b.value, a).first->second == a &&
           seconds.try_emplace(a.value, b).first->second == b;
  }
  bool matches(const KernelCall &a, const KernelCall &b) {
    if (a.kernel != b.kernel || a.grid != b.grid ||
        a.arguments.size() != b.arguments.size())
      return false;
    for (size_t k = 0; k < a.arguments.size(); ++k) {
      const KernelArgument &x = a.arguments[k], &y = b.arguments[k];
      auto *xBuffer = std::get_if<BufferId>(&x.value);
      auto *yBuffer = std::get_if<BufferId>(&y.value);
      if (x.offsetBytes != y.offsetBytes || !xBuffer != !yBuffer ||
          (xBuffer ? !same(*xBuffer, *yBuffer) : x.value != y.value))
        return false;
    }
    return true;
  }
  bool matches(const CollectiveCall &a, const CollectiveCall &b) {
    if (a.kind != b.kind || a.reduction != b.reduction ||
        a.elementType != b.elementType || a.root != b.root ||
        a.communicator != b.communicator || a.pairs != b.pairs ||
        a.members.size() != b.members.size())
      return false;
    for (size_t k = 0; k < a.members.size(); ++k)
      if (const CollectiveMember &x = a.members[k], &y = b.members[k];
          x.device != y.device || !same(x.send, y.send) ||
          !same(x.recv, y.recv) || x.sendBox != y.sendBox ||
          x.recvBox != y.recvBox)
        return false;
    return true;
  }

  const RolledTrips &rolled;
  std::map<uint32_t, BufferId> twins, seconds; ///< each way
};

/// Removes the second trip from a DAG.
class SecondTrip {
public:
  SecondTrip(Dag &dag, const RolledTrips &rolled)
      : dag(dag), rolled(rolled), isHoisted(dag.nodes.size(), false) {
    for (NodeId node : rolled.hoisted)
      isHoisted[node.value] = true;
  }

  Result<std::vector<BufferId>> drop() {
    TripMatcher matcher(rolled);
    MGPU_TRY_ASSIGN(std::vector<NodeId> newIds, matchNodes(matcher));
    std::vector<BufferId> newBuffers = matchBuffers(matcher);
    for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
      assignPhase(n, newBuffers);
      forEachBuffer(dag.nodes[n], [&](BufferId &id, int64_t &) {
        id = newBuffers[id.value];
      });
    }
    removeSecond(newIds);
    dag.loop.trips = rolled.trips;
    dag.loop.location = rolled.location;
    return newBuffers;
  }

private:
  /// Where each node goes: those of the second trip go to their twins.
  Result<std::vector<NodeId>> matchNodes(TripMatcher &matcher) const {
    auto [firstNode, secondNode, endNode] = rolled.nodes;
    auto differ = [] {
      return fail(ErrorKind::Invalid, "its trips do not make the same nodes");
    };
    std::vector<NodeId> newIds(dag.nodes.size());
    uint32_t twin = firstNode;
    auto skipHoisted = [&, secondNode = secondNode] {
      while (twin < secondNode && isHoisted[twin])
        ++twin;
    };
    for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
      if (n < secondNode || n >= endNode) {
        newIds[n] = {n < secondNode ? n : n - (endNode - secondNode)};
        continue;
      }
      skipHoisted();
      if (twin == secondNode || !matcher.matches(dag.nodes[twin], dag.nodes[n]))
        return differ();
      newIds[n] = {twin++};
    }
    skipHoisted();
    if (twin != secondNode)
      return differ();
    return newIds;
  }

  std::vector<BufferId> matchBuffers(const TripMatcher &matcher) const {
    auto [firstBuffer, secondBuffer, endBuffer] = rolled.buffers;
    std::vector<BufferId> newBuffers(dag.buffers.size());
    for (uint32_t b = 0; b < dag.buffers.size(); ++b)
      newBuffers[b] = b < secondBuffer ? BufferId{b}
                      : b >= endBuffer
                          ? BufferId{b - (endBuffer - secondBuffer)}
                          : matcher.twinOf({b}).value_or(BufferId{});
    return newBuffers;
  }

  void assignPhase(uint32_t n, const std::vector<BufferId> &newBuffers) {
    auto [firstNode, secondNode, endNode] = rolled.nodes;
    bool inBody = firstNode <= n && n < secondNode && !isHoisted[n];
    DagNode &node = dag.nodes[n];
    node.phase = inBody           ? Phase::Replay
                 : n < secondNode ? Phase::Prologue
                                  : Phase::Epilogue;
    if (secondNode <= n && n < endNode)
      return;
    for (const BufferUse &use : node.uses) {
      const uint32_t used = use.buffer.value;
      const bool isOfSecond =
          rolled.buffers[1] <= used && used < rolled.buffers[2];
      Buffer &buffer = dag.buffers[isOfSecond ? newBuffers[used].value : used];
      if (buffer.role == BufferRole::Temporary &&
          (!inBody || used < rolled.buffers[0]))
        buffer.role = BufferRole::Resident;
    }
  }

  void removeSecond(const std::vector<NodeId> &newIds) {
    auto [firstNode, secondNode, endNode] = rolled.nodes;
    uint32_t secondBuffer = rolled.buffers[1], endBuffer = rolled.buffers[2];
    dag.nodes.erase(dag.nodes.begin() + secondNode,
                    dag.nodes.begin() + endNode);
    dag.buffers.erase(dag.buffers.begin() + secondBuffer,
                      dag.buffers.begin() + endBuffer);
    // Between trips a barrier stands for all edges; those within the second
    // are those of the first.
    std::erase_if(dag.edges, [&, first = firstNode, second = secondNode,
                              end = endNode](const DepEdge &edge) {
      return second <= edge.to.value && edge.to.value < end &&
             first <= edge.from.value && !isHoisted[edge.from.value];
    });
    for (DepEdge &edge : dag.edges)
      edge = {newIds[edge.from.value], newIds[edge.to.value], edge.kind};
    dag.normalize();
    std::vector<bool> isUsed(dag.buffers.size(), false);
    for (const DagNode &node : dag.nodes)
      for (const BufferUse &use : node.uses)
        isUsed[use.buffer.value] = true;
    std::erase_if(dag.loop.inductions, [&](const Induction &induction) {
      return induction.buffer.value >= secondBuffer ||
             !isUsed[induction.buffer.value];
    });
  }

  Dag &dag;
  const RolledTrips &rolled;
  std::vector<bool> isHoisted;
};

} // namespace

Result<std::vector<BufferId>> dropSecondTrip(Dag &dag,
                                             const RolledTrips &rolled) {
  return SecondTrip(dag, rolled).drop();
}

} // namespace mgpu::planner
