// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The faults that the matcher finds: calls that differ, and calls that nobody
// answers.
#include "planner/record/CollectiveMatcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::planner {

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
