// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/CollectiveMatcher.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

namespace mgpu::planner {

std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * shape[k];
  return strides;
}

View wholeView(BufferId buffer, std::span<const int64_t> shape) {
  return {buffer, 0, {shape.begin(), shape.end()}, rowMajorStrides(shape)};
}

View sliceOf(const View &view, size_t axis, int64_t index, int64_t count) {
  View slice = view;
  slice.sizes[axis] /= count;
  slice.offset += index * slice.sizes[axis] * slice.strides[axis];
  return slice;
}

View bySlices(const View &view, size_t axis, int64_t count) {
  if (axis == 0) // it has them so
    return view;
  View slices = sliceOf(view, axis, 0, count);
  slices.strides.insert(slices.strides.begin(),
                        slices.sizes[axis] * slices.strides[axis]);
  slices.sizes.insert(slices.sizes.begin(), count);
  return slices;
}

Box boxOf(const View &view, uint32_t elementBytes) {
  Box box;
  box.elementBytes = elementBytes;
  box.offset = view.offset * elementBytes;
  box.sizes = view.sizes;
  for (int64_t stride : view.strides)
    box.strides.push_back(stride * elementBytes);
  return box;
}

Distinct areDistinct(const View &view) {
  if (std::ranges::count(view.sizes, 0) > 0)
    return Distinct::Yes;
  std::vector<std::pair<int64_t, int64_t>> dims; // |stride|, size
  for (size_t k = 0; k < view.sizes.size(); ++k) {
    if (view.sizes[k] > 1 && view.strides[k] == 0)
      return Distinct::No;
    if (view.sizes[k] > 1)
      dims.emplace_back(std::abs(view.strides[k]), view.sizes[k]);
  }
  // They are distinct for certain where each stride passes all that smaller
  // ones reach.
  std::ranges::sort(dims);
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return Distinct::Unknown;
    if (__builtin_mul_overflow(stride, size - 1, &stride) ||
        __builtin_add_overflow(reach, stride, &reach))
      return Distinct::Yes; // no machine has such a buffer: refused at the end
  }
  return Distinct::Yes;
}

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
      [&](const RecordedCalls &node) { return isBehindOpenCall(node); });
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

bool CollectiveMatcher::isBehindOpenCall(const RecordedCalls &node) const {
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

// The faults that the matcher finds: calls that differ, and calls that nobody
// answers.

std::string CollectiveCallSite::name() const {
  if (kind == CollectiveKind::SendRecv)
    return isSend ? "send" : "recv";
  return std::string(toString(kind));
}

Result<void>
CollectiveMatcher::checkMatch(const CollectiveCallSite &first,
                              const CollectiveCallSite &site) const {
  auto mismatch = [&](const std::string &what) {
    Finding finding;
    finding.place = site.place;
    finding.text = fmt::format("deadlock: rank {} {}", site.rank, what);
    finding.notes.push_back(
        {fmt::format("the matching call of rank {} is here", first.rank),
         first.place});
    return findings.error(std::move(finding));
  };
  bool pair = site.kind == CollectiveKind::SendRecv;
  const View &mine = site.isSend || !pair ? site.send : site.recv;
  const View &other = first.isSend || !pair ? first.send : first.recv;
  if (site.kind != first.kind)
    return mismatch(fmt::format("calls {} where rank {} calls {}", site.name(),
                                first.rank, first.name()));
  if (site.elementType != first.elementType)
    return mismatch(fmt::format("uses element type {} where the other has {}",
                                toString(site.elementType),
                                toString(first.elementType)));
  if (site.axes != first.axes)
    return mismatch(
        site.kind == CollectiveKind::AllToAll
            ? fmt::format("cuts along axis {} and joins along axis {} where "
                          "the other has {} and {}",
                          site.axes.split, site.axes.concat, first.axes.split,
                          first.axes.concat)
            : fmt::format("cuts along axis {} where the other cuts along axis "
                          "{}",
                          site.axes.split, first.axes.split));
  if (mine.sizes != other.sizes ||
      (!pair && site.recv.sizes != first.recv.sizes))
    return mismatch("uses a buffer of another shape");
  if (site.reduction != first.reduction)
    return mismatch(fmt::format("reduces by {} where the other reduces by {}",
                                toString(site.reduction),
                                toString(first.reduction)));
  if (site.kind == CollectiveKind::Broadcast && site.root != first.root)
    return mismatch(fmt::format("names root {} where the other names {}",
                                site.root, first.root));
  if (site.pairs != first.pairs)
    return mismatch(fmt::format("names the pairs {} where the other names {}",
                                toString(site.pairs), toString(first.pairs)));
  return {};
}

/// A rank that waits for another rank's later work waits for itself.
Result<void>
CollectiveMatcher::checkOwnMatch(const Pending &calls,
                                 const VectorClock &reached) const {
  for (const CollectiveCallSite &call : calls) {
    if (!reached.covers(call.point))
      continue;
    auto waits = std::ranges::find_if(calls, [&](const auto &other) {
      return other.reach.covers(call.point);
    });
    Finding finding;
    finding.place = waits->place;
    finding.text = fmt::format("deadlock: this {} of rank {} is queued behind "
                               "work that waits for its match",
                               waits->name(), waits->rank);
    finding.notes.push_back({fmt::format("the matching {} of rank {} is here",
                                         call.name(), call.rank),
                             call.place});
    return findings.error(std::move(finding));
  }
  return {};
}

Result<void> CollectiveMatcher::checkBlocking(const VectorClock &reach,
                                              Place blocker) const {
  const CollectiveCallSite *call =
      findOpen([&](const auto &open) { return reach.covers(open.point); });
  if (!call)
    return {};
  Finding finding;
  finding.place = blocker;
  finding.text = fmt::format("deadlock: the host waits here for the {} of rank "
                             "{} that other ranks call only later or never",
                             call->name(), call->rank);
  finding.notes.push_back({"the call is here", call->place});
  return findings.error(std::move(finding));
}

void CollectiveMatcher::checkUses(const RecordedNode &entry) {
  if (earlyUse || numPending == 0)
    return;
  BufferId met;
  const CollectiveCallSite *call = findOpen([&](const auto &open) {
    for (const BufferUse &use : entry.node.uses) {
      auto meets = [&](const View &view, bool written) {
        return use.buffer == view.buffer && (use.writes || written) &&
               overlap(use.box, boxOf(view, sizeBytes(open.elementType))) ==
                   Overlap::Yes;
      };
      met = use.buffer;
      if ((open.sends() && meets(open.send, false)) ||
          (open.receives() && meets(open.recv, true)))
        return true;
    }
    return false;
  });
  if (call)
    earlyUse = EarlyUse{call->place, met, entry.calls.front().place,
                        call->name(), call->rank};
}

/// All calls were answered in the end, one of them too late.
Result<void> CollectiveMatcher::lateAnswer(const EarlyUse &use) const {
  Finding finding;
  finding.place = use.place;
  finding.text = fmt::format(
      "deadlock: this uses buffer '{}' of an earlier {}, which other ranks "
      "call only later; move it after their calls",
      dag.buffer(use.buffer).name, use.name);
  finding.notes.push_back(
      {fmt::format("the call of rank {} is here", use.rank), use.call});
  return findings.error(std::move(finding));
}

Result<void> CollectiveMatcher::finish() const {
  Result<void> result;
  for (const State &state : states) {
    for (const Pending &calls : state.pending) {
      if (calls.empty())
        continue;
      const CollectiveCallSite &first = calls.front();
      Finding finding;
      finding.place = first.place;
      finding.text =
          fmt::format("deadlock: {} is called by rank {} but never by rank",
                      first.name(), first.rank);
      const char *separator = " ";
      for (uint32_t rank = 0; rank < state.callsMade.size(); ++rank)
        if (std::ranges::find(calls, rank, &CollectiveCallSite::rank) ==
            calls.end()) {
          finding.text += separator + std::to_string(rank);
          separator = ", ";
        }
      finding.notes.push_back(
          {"of this communicator", communicators[first.communicator].place});
      if (earlyUse && earlyUse->call.value == first.place.value)
        finding.notes.push_back({"what waits for it is here", earlyUse->place});
      keepFirst(result, findings.error(std::move(finding)));
    }
    for (const auto *queues : {&state.sends, &state.receives})
      for (const auto &[key, queue] : *queues)
        for (const CollectiveCallSite &call : queue) {
          Finding finding;
          finding.place = call.place;
          finding.text = fmt::format(
              "deadlock: {} of rank {} {} rank {} has no matching {}",
              call.name(), call.rank, call.isSend ? "to" : "from", call.peer,
              call.isSend ? "recv" : "send");
          keepFirst(result, findings.error(std::move(finding)));
        }
  }
  if (result && earlyUse)
    result = lateAnswer(*earlyUse);
  return result;
}

} // namespace mgpu::planner
