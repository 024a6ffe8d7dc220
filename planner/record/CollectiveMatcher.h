// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_COLLECTIVEMATCHER_H
#define MGPU_PLANNER_RECORD_COLLECTIVEMATCHER_H

// Puts the single devices' calls together: the k-th call of each rank on a
// communicator is one collective; sends and receives pair in order per (sender,
// receiver). A call without a match is a deadlock.

#include "planner/dag/Dag.h"
#include "planner/record/NodeRecorder.h"

#include <deque>
#include <map>
#include <span>
#include <vector>

namespace mgpu::planner {

// A part of a buffer as a call names it.

/// A strided view of a root buffer. The offset and the strides count elements
/// of the buffer's type.
struct View {
  BufferId buffer;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  bool operator==(const View &) const = default;
};

/// Row-major strides of a shape, in elements.
std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape);

/// The view of a whole buffer of that shape.
View wholeView(BufferId buffer, std::span<const int64_t> shape);

/// Slice `index` of `count` equal ones along an axis, whose size they divide.
View sliceOf(const View &view, size_t axis, int64_t index, int64_t count);

/// The view with its slices along an axis one after the other: in row-major
/// order all elements of the first slice come before those of the second.
View bySlices(const View &view, size_t axis, int64_t count);

/// The bytes of a view.
Box boxOf(const View &view, uint32_t elementBytes);

/// Whether no two elements of the view lie in one place.
enum class Distinct {
  Yes,
  No,      ///< a stride of a dimension with several elements is 0
  Unknown, ///< strides may or may not make elements meet
};
Distinct areDistinct(const View &view);

/// Who calls the collectives of a communicator. The calls of one member stand
/// for those of all, of which nothing is known but that they are alike: such a
/// collective is an OpaqueCall.
enum class CallsOf : uint8_t { All, OneMember };

struct Communicator {
  std::vector<DeviceId> devices; ///< by rank
  Place place;
  CallsOf callers = CallsOf::All;
};

/// The axes along which a call cuts what it sends and joins what it receives;
/// one of them twice but for all_to_all.
struct SliceAxes {
  int64_t split = 0, concat = 0;
  bool operator==(const SliceAxes &) const = default;
};

/// One rank's call.
struct CollectiveCallSite {
  Place place;
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType elementType = ElementType::F32;
  uint32_t communicator = 0, rank = 0;
  uint32_t root = 0; ///< broadcast
  SliceAxes axes;
  std::vector<RankPair> pairs; ///< permute, ascending
  uint32_t peer = 0;           ///< send, recv
  bool isSend = false;
  View send = {}, recv = {}; ///< equal of broadcast, send and recv
  SourcePoint point = {};
  VectorClock before = {}; ///< SourceOrder::clockAt
  VectorClock reach = {};  ///< SourceOrder::reachAt

  std::string name() const; ///< for messages
  bool sends() const;       ///< whether it reads the caller's bytes
  bool receives() const;    ///< whether it writes the caller's bytes
  /// Whether another rank's bytes come from this one.
  bool sendsTo(uint32_t other) const;
};

class CollectiveMatcher {
public:
  CollectiveMatcher(Dag &dag, SourceOrder &order, NodeRecorder &recorder,
                    Findings &findings)
      : dag(dag), order(order), recorder(recorder), findings(findings) {}

  uint32_t addCommunicator(Communicator communicator);
  const Communicator &communicator(uint32_t index) const {
    return communicators[index];
  }

  /// Takes a call already put on its queue; when it is the last of its
  /// collective, the node is recorded.
  Result<void> call(CollectiveCallSite site);

  /// A deadlock is found if a call that some rank has not answered is among
  /// what `reach` covers, i.e. the host is about to wait for it at `blocker`.
  Result<void> checkBlocking(const VectorClock &reach, Place blocker) const;
  /// Notes a use of bytes that an unanswered call reads or writes. That is an
  /// error, and finish() says which: the call may stay unanswered for ever.
  void checkUses(const RecordedNode &node);
  /// Whether the node is queued behind an unanswered call.
  bool isBehindOpenCall(const RecordedCalls &node) const;
  /// Whether every call so far has been answered.
  bool isIdle() const { return numPending == 0; }
  /// Reports every call still unanswered at the end of the program.
  Result<void> finish() const;

private:
  using Pending = std::vector<CollectiveCallSite>;
  struct State {
    std::vector<uint32_t> callsMade; ///< per rank
    uint32_t firstOpen = 0;          ///< number of pending.front()
    std::deque<Pending> pending;     ///< by call number, incomplete ones
    std::map<std::pair<uint32_t, uint32_t>, std::deque<CollectiveCallSite>>
        sends, receives; ///< by (sender, receiver)
  };

  Result<void> callCollective(CollectiveCallSite site);
  Result<void> callPointToPoint(CollectiveCallSite site);
  Result<void> checkMatch(const CollectiveCallSite &first,
                          const CollectiveCallSite &site) const;
  Result<void> checkOwnMatch(const Pending &calls,
                             const VectorClock &reached) const;
  struct EarlyUse;
  Result<void> lateAnswer(const EarlyUse &use) const;
  Result<void> complete(Pending calls);
  RecordedNode nodeOf(const Pending &calls) const;
  bool areOfOne(const CollectiveCallSite &site) const {
    return communicators[site.communicator].callers == CallsOf::OneMember;
  }
  void learnOrder(const Pending &calls, const VectorClock &reached);
  /// The first unanswered call, in a fixed order, that `isSought`; or null.
  const CollectiveCallSite *findOpen(
      const std::function<bool(const CollectiveCallSite &)> &isSought) const;

  Dag &dag;
  SourceOrder &order;
  NodeRecorder &recorder;
  Findings &findings;
  std::vector<Communicator> communicators;
  std::vector<State> states;
  /// A use of a call's buffer before the call was answered.
  struct EarlyUse {
    Place call; ///< that was made
    BufferId buffer;
    Place place;
    std::string name; ///< of the collective
    uint32_t rank;    ///< that made the call
  };
  std::optional<EarlyUse> earlyUse; ///< the first
  uint32_t numPending = 0;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_COLLECTIVEMATCHER_H
