// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_NODERECORDER_H
#define MGPU_PLANNER_RECORD_NODERECORDER_H

// Appends nodes to the DAG in program order and judges each new dependence: if
// the program's own streams and waits do not order it, it is a race.

#include "planner/dag/DagBuilder.h"
#include "planner/dag/IntervalIndex.h"
#include "planner/record/Findings.h"
#include "planner/record/SourceOrder.h"
#include "planner/record/TouchedSet.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace mgpu::planner {

struct LaunchRaceSpec;

/// The calls of a node, as the race check needs to know them. A collective has
/// one per rank, everything else has exactly one.
struct RecordedCalls {
  struct Call {
    SourcePoint point;  ///< its place on its queue
    VectorClock before; ///< what its queue had waited for when it was issued
    Place place;
  };
  std::vector<Call> calls;
  std::vector<uint32_t> callOfUse; ///< per use; empty: call 0 for all
  std::vector<bool> inexact;       ///< per use: may touch less; empty: none may
  /// Per use that may touch less: what it touches, or null. Entries beyond the
  /// end are null.
  std::vector<std::shared_ptr<const TouchedSets>> sets;
};
struct RecordedNode : RecordedCalls {
  DagNode node;
};

class NodeRecorder {
public:
  NodeRecorder(Dag &dag, const SourceOrder &order, Findings &findings,
               bool racesAreErrors, MeetSets meetSets)
      : dag(dag), order(order), findings(findings), tracker(dag),
        racesAreErrors(racesAreErrors), meetSets(std::move(meetSets)) {}

  /// Appends the node. Its races are reported; finish() fails with the first
  /// that is an error, so that a program hears of all of them. `isOpen`: the
  /// node is queued behind a collective call that has no match yet. Its
  /// predecessors are known only once the call has one, so its races are judged
  /// by judgeDeferred.
  void record(RecordedNode node, bool isOpen);
  /// Nodes not judged yet that follow `point` follow all `clock` covers.
  void learn(SourcePoint point, const VectorClock &clock);
  /// Judges the deferred nodes that are not `isOpen` any more.
  void judgeDeferred(const std::function<bool(const RecordedCalls &)> &isOpen);
  /// It is reported as races between nodes are.
  void reportWithin(const LaunchRaceSpec &race);
  /// Says how many races went unreported, and fails where one was an error.
  Result<void> finish();
  uint32_t numRaces() const { return races; }

private:
  struct Conflict {
    Overlap overlap = Overlap::None;
    Place earlier, later;
    BufferId buffer;
  };
  /// A use by its position in its node's `uses`.
  struct Use {
    NodeId node;
    uint32_t index;
  };
  struct Deferred {
    NodeId node;
    std::vector<NodeId> suspects; ///< earlier nodes it may race with
  };
  std::vector<NodeId> suspectsOf(NodeId id, const RecordedCalls &entry,
                                 size_t firstEdge);
  void addHiddenSuspects(NodeId id, const RecordedCalls &entry,
                         std::vector<NodeId> &suspects);
  void hideBehind(NodeId id, const RecordedCalls &entry, size_t firstEdge);
  std::optional<Conflict> unorderedConflict(NodeId from,
                                            const RecordedCalls &to,
                                            const DagNode &toNode);
  Overlap meet(const RecordedCalls &a, const BufferUse &aUse, size_t aIndex,
               const RecordedCalls &b, const BufferUse &bUse, size_t bIndex);
  void judge(NodeId id, const RecordedCalls &entry,
             const std::vector<NodeId> &suspects);
  void report(const Conflict &conflict);
  void reportUnwrittenReads();
  void say(Finding finding, Place earlier, bool isProven);
  const SourcePoint &pointOf(Use use) const;

  Dag &dag;
  const SourceOrder &order;
  Findings &findings;
  DependencyTracker tracker;
  bool racesAreErrors;
  MeetSets meetSets;
  /// Trips of a loop that is unrolled ask the same again.
  std::map<std::pair<TouchedSets, TouchedSets>, Overlap> answers;
  uint32_t races = 0;
  /// Errors and warnings are counted apart, each with a limit of its own: what
  /// may be a race must not hide one that is.
  struct Reports {
    std::set<std::pair<uint32_t, uint32_t>> pairs; ///< places; each once
    uint32_t numHidden = 0;                        ///< past the limit
    Place firstHidden;
  };
  Reports errors, warnings;
  std::optional<Error> firstError;
  std::deque<RecordedCalls> recorded; ///< by node
  std::vector<Deferred> deferred;
  /// Per buffer, the sure uses that a write which may touch less took out of
  /// the tracker's view: a later race with them is proven, one with that write
  /// only possible.
  std::vector<IntervalIndex<Use>> hidden;
  std::set<std::pair<uint32_t, uint32_t>> wasHidden; ///< node, use
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_NODERECORDER_H
