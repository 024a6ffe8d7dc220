// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_WORKERPROGRAM_H
#define MGPU_DEVICE_HOST_WORKERPROGRAM_H

// A graph flattened for replay: per queue one array of calls, cut into segments
// by the few waits that queue order and earlier waits do not already imply.

#include <cstdint>
#include <span>
#include <vector>

namespace mgpu::device {

/// One node: what to call.
struct Op {
  void (*function)(void *) = nullptr;
  void *context = nullptr;
};

/// Wait until `queue` has published `ordinal` times in this replay.
struct QueueWait {
  uint32_t queue = 0, ordinal = 0;
};

/// The waits up to waitEnd, then the calls up to opEnd, then, if set, one
/// publication. Each begins where the previous segment ended.
struct Segment {
  uint32_t waitEnd = 0, opEnd = 0;
  bool publishes = false;
};

struct WorkerQueue {
  std::vector<Op> ops;
  std::vector<uint32_t> nodes; ///< the graph node of each op
  std::vector<Segment> segments;
  std::vector<QueueWait> waits;
};

/// Queue 0 ends with a wait for the end of every other queue, so queue 0 done
/// means replay done.
struct WorkerProgram {
  std::vector<WorkerQueue> queues;
  std::vector<Op> serial; ///< every op in creation order
  uint32_t numActive = 0; ///< queues with at least one op
};

struct ProgramNode {
  uint32_t queue = 0;
  Op op;
  std::vector<uint32_t> dependencies; ///< earlier nodes
};

/// Nodes are in a topological order. Costs O(edges x queues).
WorkerProgram buildProgram(std::span<const ProgramNode> nodes,
                           uint32_t numQueues);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_WORKERPROGRAM_H
