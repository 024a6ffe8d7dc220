// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_COLLECTIVEMATCHER_H
#define MGPU_PLANNER_IMPORT_COLLECTIVEMATCHER_H

// Puts the single devices' calls together: the k-th call of each rank on a
// communicator is one collective; sends and receives pair in order per
// (sender, receiver). What does not match is a deadlock.

#include "planner/import/HostValue.h"
#include "planner/import/NodeRecorder.h"

#include <deque>
#include <map>

namespace mgpu::planner {

struct Communicator {
  std::vector<DeviceId> devices; ///< by rank
  mlir::Location location;
};

/// One rank's call.
struct CollectiveCallSite {
  mlir::Location location;
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType elementType = ElementType::F32;
  uint32_t communicator = 0, rank = 0;
  uint32_t root = 0; ///< broadcast
  uint32_t peer = 0; ///< send, recv
  bool isSend = false;
  MemRefValue send = {},
              recv = {}; ///< equal for broadcast; one of them for send, recv
  SourcePoint point = {};
  VectorClock before = {}; ///< SourceOrder::clockAt
  VectorClock reach = {};  ///< SourceOrder::reachAt
};

class CollectiveMatcher {
public:
  CollectiveMatcher(Dag &dag, SourceOrder &order, NodeRecorder &recorder)
      : dag(dag), order(order), recorder(recorder) {}

  uint32_t addCommunicator(Communicator communicator);
  const Communicator &communicator(uint32_t index) const {
    return communicators[index];
  }

  /// Takes a call already put on its queue; when it is the last of its
  /// collective, the node is recorded. Fails after a diagnostic.
  mlir::LogicalResult call(CollectiveCallSite site);

  /// Diagnoses a deadlock if a call some rank has not answered is among what
  /// `reach` covers, i.e. the host is about to wait for it.
  mlir::LogicalResult checkBlocking(const VectorClock &reach,
                                    mlir::Location blocker) const;
  /// Diagnoses a use of bytes that an unanswered call reads or writes.
  mlir::LogicalResult checkUses(const RecordedNode &node) const;
  /// Whether the node is queued behind an unanswered call.
  bool isBehindOpenCall(const RecordedNode &node) const;
  /// Whether every call so far has been answered.
  bool isIdle() const;
  /// Diagnoses every call still unanswered at the end of the program.
  mlir::LogicalResult finish() const;

private:
  using Pending = std::vector<CollectiveCallSite>;
  struct State {
    std::vector<uint32_t> callsMade; ///< per rank
    uint32_t firstOpen = 0;          ///< number of pending.front()
    std::deque<Pending> pending;     ///< by call number, incomplete ones
    std::map<std::pair<uint32_t, uint32_t>, std::deque<CollectiveCallSite>>
        sends, receives; ///< by (sender, receiver)
  };

  mlir::LogicalResult callCollective(CollectiveCallSite site);
  mlir::LogicalResult callPointToPoint(CollectiveCallSite site);
  mlir::LogicalResult matches(const CollectiveCallSite &first,
                              const CollectiveCallSite &site) const;
  mlir::LogicalResult complete(Pending calls);
  void learnOrder(const Pending &calls, const VectorClock &reached);
  void forEachPending(
      llvm::function_ref<void(const CollectiveCallSite &)> visit) const;

  Dag &dag;
  SourceOrder &order;
  NodeRecorder &recorder;
  std::vector<Communicator> communicators;
  std::vector<State> states;
  uint32_t numPending = 0;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_COLLECTIVEMATCHER_H
