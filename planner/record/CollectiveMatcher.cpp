// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/CollectiveMatcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::planner {

bool CollectiveCallSite::sends() const {
  return kind == CollectiveKind::SendRecv ? isSend : sidesOf(*this, rank).sends;
}

bool CollectiveCallSite::receives() const {
  if (kind == CollectiveKind::Broadcast) // the root's stay where they are
    return rank != root;
  return kind != CollectiveKind::SendRecv || !isSend;
}

bool CollectiveCallSite::sendsTo(uint32_t other) const {
  if (kind == CollectiveKind::Permute)
    return targetOf(pairs, rank) == other;
  return sends();
}

uint32_t CollectiveMatcher::addCommunicator(Communicator communicator) {
  State state;
  state.callsMade.resize(communicator.devices.size());
  communicators.push_back(std::move(communicator));
  states.push_back(std::move(state));
  return uint32_t(communicators.size() - 1);
}

Result<void> CollectiveMatcher::call(CollectiveCallSite site) {
  ++numPending;
  return site.kind == CollectiveKind::SendRecv
             ? callPointToPoint(std::move(site))
             : callCollective(std::move(site));
}

Result<void> CollectiveMatcher::callCollective(CollectiveCallSite site) {
  State &state = states[site.communicator];
  uint32_t number = state.callsMade[site.rank]++;
  if (number - state.firstOpen >= state.pending.size())
    state.pending.resize(number - state.firstOpen + 1);
  Pending &calls = state.pending[number - state.firstOpen];
  if (!calls.empty())
    MGPU_TRY(checkMatch(calls.front(), site));
  calls.push_back(std::move(site));
  if (calls.size() < state.callsMade.size() && !areOfOne(calls.front()))
    return {};
  Pending done = std::move(calls);
  calls.clear();
  // Call k+1 can only complete after call k: each rank calls in order.
  state.pending.pop_front();
  ++state.firstOpen;
  std::sort(done.begin(), done.end(),
            [](const auto &a, const auto &b) { return a.rank < b.rank; });
  return complete(std::move(done));
}

Result<void> CollectiveMatcher::callPointToPoint(CollectiveCallSite site) {
  State &state = states[site.communicator];
  auto key = site.isSend ? std::pair(site.rank, site.peer)
                         : std::pair(site.peer, site.rank);
  auto &waiting = site.isSend ? state.receives[key] : state.sends[key];
  if (waiting.empty()) {
    auto &queue = site.isSend ? state.sends[key] : state.receives[key];
    queue.push_back(std::move(site));
    return {};
  }
  CollectiveCallSite other = std::move(waiting.front());
  waiting.pop_front();
  MGPU_TRY(checkMatch(other, site));
  Pending calls;
  bool thisSends = site.isSend;
  calls.push_back(thisSends ? std::move(site) : std::move(other));
  calls.push_back(thisSends ? std::move(other) : std::move(site));
  return complete(std::move(calls));
}

/// A collective as far as the call of one member tells it.
static OpaqueCall opaqueCall(const CollectiveCall &call, uint32_t width,
                             size_t group) {
  const CollectiveMember &member = call.members.front();
  const int64_t elements =
      std::max(member.sendBox.numElements(), member.recvBox.numElements());
  OpaqueCall out;
  out.isCollective = true;
  out.kind = call.kind;
  out.bytes = uint64_t(elements) * width;
  out.group = uint32_t(group);
  return out;
}

RecordedNode CollectiveMatcher::nodeOf(const Pending &calls) const {
  const CollectiveCallSite &first = calls.front();
  RecordedNode entry;
  DagNode &node = entry.node;
  node.name = fmt::format("{}_{}", toString(first.kind), dag.nodes.size());
  node.location = findings.textOf(first.place);
  node.part = findings.partOf(first.place);
  const uint32_t width = sizeBytes(first.elementType);
  CollectiveCall work;
  work.kind = first.kind;
  work.reduction = first.reduction;
  work.elementType = first.elementType;
  work.root = first.root;
  work.pairs = first.pairs;
  work.communicator = first.communicator;
  for (uint32_t k = 0; k < calls.size(); ++k) {
    const CollectiveCallSite &call = calls[k];
    DeviceId device = communicators[call.communicator].devices[call.rank];
    CollectiveMember member{device, call.send.buffer, call.recv.buffer,
                            boxOf(call.send, width), boxOf(call.recv, width)};
    auto use = [&](BufferId buffer, const Box &box, bool isRead) {
      node.uses.push_back({buffer, box, isRead, !isRead});
      entry.callOfUse.push_back(k);
      (isRead ? node.bytesRead : node.bytesWritten) +=
          uint64_t(box.numElements()) * width;
    };
    if (call.sends())
      use(member.send, member.sendBox, true);
    if (call.receives())
      use(member.recv, member.recvBox, false);
    work.members.push_back(std::move(member));
    node.devices.push_back(device);
    entry.calls.push_back({call.point, call.before, call.place});
  }
  if (areOfOne(first)) {
    node.devices = communicators[first.communicator].devices;
    node.work = opaqueCall(work, width, node.devices.size());
  } else {
    node.work = std::move(work);
  }
  std::ranges::sort(node.devices);
  return entry;
}

Result<void> CollectiveMatcher::complete(Pending calls) {
  numPending -= uint32_t(calls.size());
  VectorClock reached;
  for (const CollectiveCallSite &call : calls)
    reached.join(call.reach);
  MGPU_TRY(checkOwnMatch(calls, reached));
  RecordedNode entry = nodeOf(calls);
  learnOrder(calls, reached);
  bool isOpen = isBehindOpenCall(entry);
  recorder.record(std::move(entry), isOpen);
  recorder.judgeDeferred(
      [&](const RecordedNode &node) { return isBehindOpenCall(node); });
  return {};
}

/// Calls `visit` for each call some rank has not answered.
template <typename States, typename Visit>
static void visitOpen(States &states, Visit visit) {
  for (auto &state : states) {
    for (auto &calls : state.pending)
      std::ranges::for_each(calls, visit);
    for (auto *queues : {&state.sends, &state.receives})
      for (auto &[key, queue] : *queues)
        std::ranges::for_each(queue, visit);
  }
}

// Who receives has waited for what the senders' queues had waited for. Who only
// sends may be done before a receiver starts. Work queued behind a member's
// call since then follows it too.
void CollectiveMatcher::learnOrder(const Pending &calls,
                                   const VectorClock &reached) {
  for (const CollectiveCallSite &call : calls) {
    order.learnReach(call.point, reached);
    visitOpen(states, [&](CollectiveCallSite &open) {
      if (open.reach.covers(call.point))
        open.reach.join(reached);
    });
    if (!call.receives())
      continue;
    VectorClock sent;
    for (const CollectiveCallSite &other : calls)
      if (other.rank != call.rank && other.sendsTo(call.rank))
        sent.join(other.before);
    order.learn(call.point, sent);
    recorder.learn(call.point, sent);
    visitOpen(states, [&](CollectiveCallSite &open) {
      if (open.before.covers(call.point))
        open.before.join(sent);
    });
  }
}

bool CollectiveMatcher::isBehindOpenCall(const RecordedNode &node) const {
  return findOpen([&](const CollectiveCallSite &open) {
    return std::ranges::any_of(node.calls, [&](const auto &call) {
      return call.before.covers(open.point);
    });
  });
}

const CollectiveCallSite *CollectiveMatcher::findOpen(
    const std::function<bool(const CollectiveCallSite &)> &isSought) const {
  const CollectiveCallSite *found = nullptr;
  if (numPending > 0)
    visitOpen(states, [&](const CollectiveCallSite &open) {
      if (!found && isSought(open))
        found = &open;
    });
  return found;
}

} // namespace mgpu::planner
