// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/CollectiveMatcher.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>

namespace mgpu::planner {

using mlir::emitError;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

static Box boxOfMember(const MemRefValue &view, ElementType type) {
  return boxOf(view, sizeBytes(type));
}

static std::string nameOfCall(const CollectiveCallSite &site) {
  if (site.kind == CollectiveKind::SendRecv)
    return site.isSend ? "send" : "recv";
  return std::string(toString(site.kind));
}

/// Whether the caller's bytes go to other ranks.
static bool sends(const CollectiveCallSite &call) {
  if (call.kind == CollectiveKind::Broadcast)
    return call.rank == call.root;
  return call.kind != CollectiveKind::SendRecv || call.isSend;
}

/// Whether the caller gets bytes of other ranks.
static bool receives(const CollectiveCallSite &call) {
  if (call.kind == CollectiveKind::Broadcast)
    return call.rank != call.root;
  return call.kind != CollectiveKind::SendRecv || !call.isSend;
}

uint32_t CollectiveMatcher::addCommunicator(Communicator communicator) {
  State state;
  state.callsMade.resize(communicator.devices.size());
  communicators.push_back(std::move(communicator));
  states.push_back(std::move(state));
  return uint32_t(communicators.size() - 1);
}

LogicalResult CollectiveMatcher::call(CollectiveCallSite site) {
  ++numPending;
  return site.kind == CollectiveKind::SendRecv
             ? callPointToPoint(std::move(site))
             : callCollective(std::move(site));
}

LogicalResult CollectiveMatcher::matches(const CollectiveCallSite &first,
                                         const CollectiveCallSite &site) const {
  auto mismatch = [&](const llvm::Twine &what) {
    mlir::InFlightDiagnostic diagnostic = emitError(site.location)
                                          << "deadlock: rank " << site.rank
                                          << " " << what;
    diagnostic.attachNote(first.location)
        << "the matching call of rank " << first.rank << " is here";
    return failure();
  };
  bool pair = site.kind == CollectiveKind::SendRecv;
  const MemRefValue &mine = site.isSend || !pair ? site.send : site.recv;
  const MemRefValue &other = first.isSend || !pair ? first.send : first.recv;
  if (site.kind != first.kind)
    return mismatch("calls " + nameOfCall(site) + " where rank " +
                    llvm::Twine(first.rank) + " calls " + nameOfCall(first));
  if (site.elementType != first.elementType)
    return mismatch(
        "uses element type " + llvm::StringRef(toString(site.elementType)) +
        " where the other has " + llvm::StringRef(toString(first.elementType)));
  if (mine.sizes != other.sizes ||
      (!pair && site.recv.sizes != first.recv.sizes))
    return mismatch("uses a buffer of another shape");
  if (site.kind == CollectiveKind::AllReduce &&
      site.reduction != first.reduction)
    return mismatch("reduces by " + llvm::StringRef(toString(site.reduction)) +
                    " where the other reduces by " +
                    llvm::StringRef(toString(first.reduction)));
  if (site.kind == CollectiveKind::Broadcast && site.root != first.root)
    return mismatch("names root " + llvm::Twine(site.root) +
                    " where the other names " + llvm::Twine(first.root));
  return success();
}

LogicalResult CollectiveMatcher::callCollective(CollectiveCallSite site) {
  State &state = states[site.communicator];
  uint32_t number = state.callsMade[site.rank]++;
  if (number - state.firstOpen >= state.pending.size())
    state.pending.resize(number - state.firstOpen + 1);
  Pending &calls = state.pending[number - state.firstOpen];
  if (!calls.empty() && failed(matches(calls.front(), site)))
    return failure();
  calls.push_back(std::move(site));
  if (calls.size() < state.callsMade.size())
    return success();
  Pending done = std::move(calls);
  calls.clear();
  // Call k+1 can only complete after call k: each rank calls in order.
  state.pending.pop_front();
  ++state.firstOpen;
  std::sort(done.begin(), done.end(),
            [](const auto &a, const auto &b) { return a.rank < b.rank; });
  return complete(std::move(done));
}

LogicalResult CollectiveMatcher::callPointToPoint(CollectiveCallSite site) {
  State &state = states[site.communicator];
  auto key = site.isSend ? std::pair(site.rank, site.peer)
                         : std::pair(site.peer, site.rank);
  auto &waiting = site.isSend ? state.receives[key] : state.sends[key];
  if (waiting.empty()) {
    auto &queue = site.isSend ? state.sends[key] : state.receives[key];
    queue.push_back(std::move(site));
    return success();
  }
  CollectiveCallSite other = std::move(waiting.front());
  waiting.pop_front();
  if (failed(matches(other, site)))
    return failure();
  Pending calls;
  bool thisSends = site.isSend;
  calls.push_back(thisSends ? std::move(site) : std::move(other));
  calls.push_back(thisSends ? std::move(other) : std::move(site));
  return complete(std::move(calls));
}

LogicalResult CollectiveMatcher::complete(Pending calls) {
  numPending -= uint32_t(calls.size());
  VectorClock reached;
  for (const CollectiveCallSite &call : calls)
    reached.join(call.reach);
  // A rank that waits for another rank's later work waits for itself.
  for (const CollectiveCallSite &call : calls)
    if (reached.covers(call.point)) {
      auto waits = llvm::find_if(calls, [&](const CollectiveCallSite &other) {
        return other.reach.covers(call.point);
      });
      mlir::InFlightDiagnostic diagnostic =
          emitError(waits->location)
          << "deadlock: this " << nameOfCall(*waits) << " of rank "
          << waits->rank << " is queued behind work that waits for its match";
      diagnostic.attachNote(call.location)
          << "the matching " << nameOfCall(call) << " of rank " << call.rank
          << " is here";
      return failure();
    }

  const CollectiveCallSite &first = calls.front();
  RecordedNode entry;
  DagNode &node = entry.node;
  node.name = std::string(toString(first.kind)) + "_" +
              std::to_string(dag.nodes.size());
  node.location = ir::describeLocation(first.location);
  CollectiveCall work;
  work.kind = first.kind;
  work.reduction = first.reduction;
  work.elementType = first.elementType;
  work.root = first.root;
  work.communicator = first.communicator;
  for (size_t k = 0; k < calls.size(); ++k) {
    const CollectiveCallSite &call = calls[k];
    DeviceId device = communicators[call.communicator].devices[call.rank];
    CollectiveMember member{device, call.send.buffer, call.recv.buffer,
                            boxOfMember(call.send, call.elementType),
                            boxOfMember(call.recv, call.elementType)};
    bool reads = sends(call), writes = receives(call);
    uint64_t bytes =
        uint64_t(member.sendBox.numElements()) * sizeBytes(call.elementType);
    auto use = [&](BufferId buffer, const Box &box, bool read, bool write) {
      node.uses.push_back({buffer, box, read, write});
      entry.callOfUse.push_back(uint32_t(k));
    };
    if (reads) {
      use(member.send, member.sendBox, true, false);
      node.bytesRead += bytes;
    }
    if (writes) {
      use(member.recv, member.recvBox, false, true);
      node.bytesWritten +=
          uint64_t(member.recvBox.numElements()) * sizeBytes(call.elementType);
    }
    work.members.push_back(std::move(member));
    node.devices.push_back(device);
    entry.calls.push_back({call.point, call.before, call.location});
  }
  std::sort(node.devices.begin(), node.devices.end());
  node.work = std::move(work);

  learnOrder(calls, reached);
  bool isOpen = isBehindOpenCall(entry);
  LogicalResult result = recorder.record(std::move(entry), isOpen);
  if (failed(recorder.judgeDeferred(
          [&](const RecordedNode &node) { return isBehindOpenCall(node); })))
    result = failure();
  return result;
}

/// Calls `visit` for each call some rank has not answered.
template <typename States, typename Visit>
static void visitOpen(States &states, Visit visit) {
  for (auto &state : states) {
    for (auto &calls : state.pending)
      llvm::for_each(calls, visit);
    for (auto *queues : {&state.sends, &state.receives})
      for (auto &[key, queue] : *queues)
        llvm::for_each(queue, visit);
  }
}

// Who receives has waited for what the senders' queues had waited for. Who
// only sends may be done before a receiver starts. What was queued behind a
// member's call since then follows it too.
void CollectiveMatcher::learnOrder(const Pending &calls,
                                   const VectorClock &reached) {
  for (const CollectiveCallSite &call : calls) {
    order.learnReach(call.point, reached);
    visitOpen(states, [&](CollectiveCallSite &open) {
      if (open.reach.covers(call.point))
        open.reach.join(reached);
    });
    if (!receives(call))
      continue;
    VectorClock sent;
    for (const CollectiveCallSite &other : calls)
      if (sends(other) && other.rank != call.rank)
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
  bool found = false;
  forEachPending([&](const CollectiveCallSite &open) {
    for (const RecordedNode::Call &call : node.calls)
      found |= call.before.covers(open.point);
  });
  return found;
}

void CollectiveMatcher::forEachPending(
    llvm::function_ref<void(const CollectiveCallSite &)> visit) const {
  if (numPending > 0)
    visitOpen(states, visit);
}

LogicalResult CollectiveMatcher::checkBlocking(const VectorClock &reach,
                                               mlir::Location blocker) const {
  LogicalResult result = success();
  forEachPending([&](const CollectiveCallSite &call) {
    if (failed(result) || !reach.covers(call.point))
      return;
    mlir::InFlightDiagnostic diagnostic =
        emitError(blocker) << "deadlock: the host waits here for a "
                           << nameOfCall(call) << " of rank " << call.rank
                           << " that other ranks call only later or never";
    diagnostic.attachNote(call.location) << "the call is here";
    result = failure();
  });
  return result;
}

LogicalResult CollectiveMatcher::checkUses(const RecordedNode &entry) const {
  LogicalResult result = success();
  forEachPending([&](const CollectiveCallSite &call) {
    if (failed(result))
      return;
    for (const BufferUse &use : entry.node.uses) {
      auto meets = [&](const MemRefValue &view, bool written) {
        return use.buffer == view.buffer && (use.writes || written) &&
               overlap(use.box, boxOfMember(view, call.elementType)) ==
                   Overlap::Yes;
      };
      if ((!sends(call) || !meets(call.send, false)) &&
          (!receives(call) || !meets(call.recv, true)))
        continue;
      mlir::InFlightDiagnostic diagnostic =
          emitError(entry.calls.front().location)
          << "uses buffer '" << dag.buffer(use.buffer).name << "' of a "
          << nameOfCall(call)
          << " whose other ranks have not called yet; move it after their "
             "calls";
      diagnostic.attachNote(call.location)
          << "the call of rank " << call.rank << " is here";
      result = failure();
      return;
    }
  });
  return result;
}

bool CollectiveMatcher::isIdle() const {
  bool idle = true;
  visitOpen(states, [&](const CollectiveCallSite &) { idle = false; });
  return idle;
}

LogicalResult CollectiveMatcher::finish() const {
  LogicalResult result = success();
  for (const State &state : states) {
    for (const Pending &calls : state.pending) {
      if (calls.empty())
        continue;
      const CollectiveCallSite &first = calls.front();
      mlir::InFlightDiagnostic diagnostic = emitError(first.location);
      diagnostic << "deadlock: " << nameOfCall(first) << " is called by rank "
                 << first.rank << " but never by rank";
      const char *separator = " ";
      for (uint32_t rank = 0; rank < state.callsMade.size(); ++rank)
        if (llvm::none_of(
                calls, [&](const auto &call) { return call.rank == rank; })) {
          diagnostic << separator << rank;
          separator = ", ";
        }
      diagnostic.attachNote(communicators[first.communicator].location)
          << "of this communicator";
      result = failure();
    }
    for (const auto *queues : {&state.sends, &state.receives})
      for (const auto &[key, queue] : *queues)
        for (const CollectiveCallSite &call : queue) {
          emitError(call.location)
              << "deadlock: " << nameOfCall(call) << " of rank " << call.rank
              << (call.isSend ? " to rank " : " from rank ") << call.peer
              << " has no matching " << (call.isSend ? "recv" : "send");
          result = failure();
        }
  }
  return result;
}

} // namespace mgpu::planner
