// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/NodeRecorder.h"

#include "planner/record/Recorder.h"

#include <algorithm>

namespace mgpu::planner {

// Reads of device memory that nothing has written: a kernel, copy or collective
// that surely reads bytes of a buffer before anything in the program wrote near
// them.

namespace {

struct UnwrittenRead {
  NodeId node;
  size_t use;
};

/// The bytes from the first to the last that were written.
struct Written {
  int64_t first = INT64_MAX, last = INT64_MIN;

  void add(const Box &box) {
    const auto [low, high] = box.byteRange();
    first = std::min(first, low);
    last = std::max(last, high);
  }
  bool meets(const Box &box) const {
    const auto [low, high] = box.byteRange();
    return low < last && first < high;
  }
};

} // namespace

/// The first such read of each buffer that a program allocates on a device, in
/// program order. `isExact(node, use)` tells whether the use is sure to touch
/// all of its box. A node that writes the buffer it reads may write first; what
/// collectives write counts from the start, as they are recorded late.
static std::vector<UnwrittenRead>
findUnwrittenReads(const Dag &dag,
                   const std::function<bool(NodeId, size_t)> &isExact) {
  std::vector<Written> written(dag.buffers.size());
  auto write = [&](const DagNode &node) {
    for (const BufferUse &use : node.uses)
      if (use.writes)
        written[use.buffer.value].add(use.box);
  };
  for (const DagNode &node : dag.nodes)
    if (std::holds_alternative<CollectiveCall>(node.work))
      write(node);
  std::vector<UnwrittenRead> found;
  std::vector<bool> isFound(dag.buffers.size());
  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    const DagNode &node = dag.nodes[n];
    for (size_t u = 0; u < node.uses.size(); ++u) {
      const BufferUse &use = node.uses[u];
      const Buffer &buffer = dag.buffer(use.buffer);
      const bool writesIt =
          std::any_of(node.uses.begin(), node.uses.end(), [&](const auto &any) {
            return any.writes && any.buffer == use.buffer;
          });
      if (!use.reads || writesIt || buffer.device.isHost() ||
          buffer.sizeBytes == 0 || // there is nothing to write
          buffer.role != BufferRole::Temporary || isFound[use.buffer.value] ||
          !isExact({n}, u) || written[use.buffer.value].meets(use.box))
        continue;
      isFound[use.buffer.value] = true;
      found.push_back({{n}, u});
    }
    write(node);
  }
  return found;
}

namespace {
// After so many, more of the same would hide the first.
constexpr uint32_t maxReportedRaces = 20;
// More questions than these stay open: each takes its time.
constexpr size_t mostQuestions = 1000;

uint32_t callOf(const RecordedCalls &node, size_t use) {
  return node.callOfUse.empty() ? 0 : node.callOfUse[use];
}
bool isExact(const RecordedCalls &node, size_t use) {
  return node.inexact.empty() || !node.inexact[use];
}
const TouchedSets *setsOf(const RecordedCalls &node, size_t use) {
  return use < node.sets.size() ? node.sets[use].get() : nullptr;
}
/// Whether all is known of what the use touches.
bool isKnown(const RecordedCalls &node, size_t use) {
  const TouchedSets *sets = setsOf(node, use);
  return isExact(node, use) ||
         (sets && std::ranges::all_of(*sets, &TouchedSet::isSure));
}
} // namespace

/// Whether two uses whose boxes may meet do meet, as far as it is known what
/// they touch of them.
Overlap NodeRecorder::meet(const RecordedCalls &a, const BufferUse &aUse,
                           size_t aIndex, const RecordedCalls &b,
                           const BufferUse &bUse, size_t bIndex) {
  auto setsOfUse = [](const RecordedCalls &node, const BufferUse &use,
                      size_t index) {
    if (const TouchedSets *sets = setsOf(node, index))
      return *sets;
    return isExact(node, index) ? TouchedSets{setOf(use.box, use.writes)}
                                : TouchedSets{};
  };
  std::pair question{setsOfUse(a, aUse, aIndex), setsOfUse(b, bUse, bIndex)};
  if (!meetSets || question.first.empty() || question.second.empty())
    return Overlap::Maybe;
  if (auto at = answers.find(question); at != answers.end())
    return at->second;
  if (answers.size() >= mostQuestions)
    return Overlap::Maybe;
  const Overlap answer = meetSets(question.first, question.second);
  return answers.emplace(std::move(question), answer).first->second;
}

std::optional<NodeRecorder::Conflict>
NodeRecorder::unorderedConflict(NodeId from, const RecordedCalls &to,
                                const DagNode &toNode) {
  const RecordedCalls &earlier = recorded[from.value];
  const DagNode &fromNode = dag.node(from);
  std::optional<Conflict> worst;
  for (size_t u = 0; u < fromNode.uses.size(); ++u) {
    const BufferUse &a = fromNode.uses[u];
    const RecordedCalls::Call &aCall = earlier.calls[callOf(earlier, u)];
    for (size_t v = 0; v < toNode.uses.size(); ++v) {
      const BufferUse &b = toNode.uses[v];
      if (a.buffer != b.buffer || (!a.writes && !b.writes))
        continue;
      const RecordedCalls::Call &bCall = to.calls[callOf(to, v)];
      if (bCall.before.covers(aCall.point))
        continue;
      Overlap found = overlap(a.box, b.box);
      if (found == Overlap::Yes && (!isExact(earlier, u) || !isExact(to, v)))
        found = Overlap::Maybe;
      if (found == Overlap::Maybe)
        found = meet(earlier, a, u, to, b, v);
      if (found == Overlap::None || (worst && worst->overlap >= found))
        continue;
      worst = Conflict{found, aCall.place, bCall.place, a.buffer};
    }
  }
  return worst;
}

void NodeRecorder::report(const Conflict &conflict) {
  const bool isProven = conflict.overlap == Overlap::Yes;
  Finding finding;
  finding.place = conflict.later;
  finding.text = std::string(isProven ? "race" : "possible race") +
                 " on buffer '" + dag.buffer(conflict.buffer).name +
                 "': nothing in the program's streams and waits orders this "
                 "use after an earlier one; " +
                 (isProven && racesAreErrors
                      ? "add mgpu.stream_wait or a sync between them"
                      : "program order is kept");
  finding.notes.push_back({"the earlier use is here", conflict.earlier});
  say(std::move(finding), conflict.earlier, isProven);
}

void NodeRecorder::reportWithin(const LaunchRaceSpec &race) {
  Finding finding;
  finding.place = race.second;
  finding.text = std::string(race.isProven ? "race" : "possible race") +
                 " within a launch on buffer '" + dag.buffer(race.buffer).name +
                 "': " + race.text +
                 ", in no order; give each thread elements of its own, or use "
                 "memref.atomic_rmw";
  if (race.first.value != race.second.value)
    finding.notes.push_back({"the other access is here", race.first});
  say(std::move(finding), race.first, race.isProven);
}

/// Each pair of places once: a loop that is unrolled repeats it.
void NodeRecorder::say(Finding finding, Place earlier, bool isProven) {
  finding.isError = isProven && racesAreErrors;
  races += isProven;
  Reports &reports = finding.isError ? errors : warnings;
  if (!reports.pairs.insert({earlier.value, finding.place.value}).second)
    return;
  if (reports.pairs.size() > maxReportedRaces) {
    if (++reports.numHidden == 1)
      reports.firstHidden = finding.place;
    return;
  }
  if (!finding.isError)
    return findings.warn(std::move(finding));
  tl::unexpected<Error> error = findings.error(std::move(finding));
  if (!firstError)
    firstError = std::move(error.value());
}

void NodeRecorder::reportUnwrittenReads() {
  auto isSure = [&](NodeId node, size_t use) {
    return isExact(recorded[node.value], use);
  };
  uint32_t count = 0;
  for (auto [node, use] : findUnwrittenReads(dag, isSure)) {
    const RecordedCalls &entry = recorded[node.value];
    Finding finding;
    finding.place = entry.calls[callOf(entry, use)].place;
    finding.text = "reads buffer '" +
                   dag.buffer(dag.node(node).uses[use].buffer).name +
                   "', which nothing has written before: what it holds is "
                   "undefined; copy or fill it first";
    finding.isAboutCall = true;
    if (++count <= maxReportedRaces)
      findings.warn(std::move(finding));
  }
}

Result<void> NodeRecorder::finish() {
  reportUnwrittenReads();
  for (auto [reports, what] :
       {std::pair(&errors, "races"), std::pair(&warnings, "possible races")})
    if (reports->numHidden > 0) {
      Finding finding;
      finding.place = reports->firstHidden;
      finding.text = std::to_string(reports->numHidden) + " more " + what +
                     " between other lines are not listed; the first is here";
      findings.warn(std::move(finding));
    }
  return firstError ? Result<void>(fail(*firstError)) : Result<void>();
}

const SourcePoint &NodeRecorder::pointOf(Use use) const {
  const RecordedCalls &node = recorded[use.node.value];
  return node.calls[callOf(node, use.index)].point;
}

/// The nodes that `entry`, just appended as `id`, conflicts with and is not
/// plainly ordered after.
std::vector<NodeId> NodeRecorder::suspectsOf(NodeId id,
                                             const RecordedCalls &entry,
                                             size_t firstEdge) {
  std::vector<NodeId> suspects;
  for (size_t e = firstEdge; e < dag.edges.size(); ++e) {
    DepEdge edge = dag.edges[e];
    if (edge.to != id || edge.kind == DepKind::Collective)
      continue;
    // One queue is in order: the common case needs no look at the boxes.
    const RecordedCalls &earlier = recorded[edge.from.value];
    if (earlier.calls.size() != 1 || entry.calls.size() != 1 ||
        !entry.calls[0].before.covers(earlier.calls[0].point))
      suspects.push_back(edge.from);
  }
  addHiddenSuspects(id, entry, suspects);
  return suspects;
}

void NodeRecorder::addHiddenSuspects(NodeId id, const RecordedCalls &entry,
                                     std::vector<NodeId> &suspects) {
  const DagNode &node = dag.node(id);
  for (uint32_t k = 0; k < node.uses.size(); ++k) {
    const BufferUse &use = node.uses[k];
    if (use.buffer.value >= hidden.size() || !isKnown(entry, k))
      continue;
    const RecordedCalls::Call &call = entry.calls[callOf(entry, k)];
    auto [begin, end] = use.box.byteRange();
    const bool exact = isExact(entry, k), dense = use.box.isContiguous();
    auto visit = [&, begin = begin, end = end](int64_t first, int64_t last,
                                               const Use &known) {
      SourcePoint point = pointOf(known);
      if (order.hostClock().covers(point))
        return false;
      const BufferUse &earlier = dag.node(known.node).uses[known.index];
      if ((earlier.writes || use.writes) && !call.before.covers(point) &&
          std::ranges::find(suspects, known.node) == suspects.end() &&
          overlap(earlier.box, use.box) >=
              (exact && isExact(recorded[known.node.value], known.index)
                   ? Overlap::Yes
                   : Overlap::Maybe))
        suspects.push_back(known.node);
      // Who is not ordered after `known` is then not ordered after this use
      // either, or was found to race with `known` just now.
      const TouchedSets *own = setsOf(entry, k),
                        *its = setsOf(recorded[known.node.value], known.index);
      bool covers = !exact  ? its && *its == *own
                    : dense ? begin <= first && last <= end
                            : earlier.box == use.box;
      return !covers || !(use.writes ||
                          (!earlier.writes && point.chain == call.point.chain));
    };
    hidden[use.buffer.value].meet(begin, end, visit);
  }
}

/// Keeps the sure uses in view that the tracker may no longer show because of
/// a write of `entry` that may touch less than it says.
void NodeRecorder::hideBehind(NodeId id, const RecordedCalls &entry,
                              size_t firstEdge) {
  const DagNode &node = dag.node(id);
  for (uint32_t k = 0; k < node.uses.size(); ++k) {
    const BufferUse &use = node.uses[k];
    if (!use.writes || isExact(entry, k))
      continue;
    for (size_t e = firstEdge; e < dag.edges.size(); ++e) {
      NodeId from = dag.edges[e].from;
      const DagNode &fromNode = dag.node(from);
      for (uint32_t u = 0; u < fromNode.uses.size(); ++u) {
        const BufferUse &earlier = fromNode.uses[u];
        if (earlier.buffer != use.buffer || !isKnown(recorded[from.value], u) ||
            order.hostClock().covers(pointOf({from, u})) ||
            overlap(earlier.box, use.box) == Overlap::None ||
            !wasHidden.insert({from.value, u}).second)
          continue;
        if (hidden.size() <= use.buffer.value)
          hidden.resize(use.buffer.value + 1);
        auto [begin, end] = earlier.box.byteRange();
        hidden[use.buffer.value].insert(begin, end, {from, u});
      }
    }
  }
}

void NodeRecorder::judge(NodeId id, const RecordedCalls &entry,
                         const std::vector<NodeId> &suspects) {
  for (NodeId from : suspects)
    if (auto conflict = unorderedConflict(from, entry, dag.node(id)))
      report(*conflict);
}

void NodeRecorder::record(RecordedNode entry, bool isOpen) {
  size_t firstEdge = dag.edges.size();
  NodeId id = tracker.append(std::move(entry.node));
  std::vector<NodeId> suspects = suspectsOf(id, entry, firstEdge);
  hideBehind(id, entry, firstEdge);
  if (isOpen && !suspects.empty()) {
    deferred.push_back({id, std::move(suspects)});
    recorded.push_back(std::move(entry));
    return;
  }
  judge(id, entry, suspects);
  // The clocks were needed for this check alone; keeping them would cost
  // nodes x queues.
  for (RecordedCalls::Call &call : entry.calls)
    call.before = VectorClock();
  recorded.push_back(std::move(entry));
}

void NodeRecorder::learn(SourcePoint point, const VectorClock &clock) {
  for (const Deferred &waiting : deferred)
    for (RecordedCalls::Call &call : recorded[waiting.node.value].calls)
      if (call.before.covers(point))
        call.before.join(clock);
}

void NodeRecorder::judgeDeferred(
    const std::function<bool(const RecordedCalls &)> &isOpen) {
  std::erase_if(deferred, [&](const Deferred &waiting) {
    RecordedCalls &entry = recorded[waiting.node.value];
    if (isOpen(entry))
      return false;
    judge(waiting.node, entry, waiting.suspects);
    for (RecordedCalls::Call &call : entry.calls)
      call.before = VectorClock();
    return true;
  });
}

} // namespace mgpu::planner
