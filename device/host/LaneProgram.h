// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_LANEPROGRAM_H
#define MGPU_DEVICE_HOST_LANEPROGRAM_H

// A graph flattened for replay: per lane one array of calls, cut into segments
// by the few waits that lane order and earlier waits do not already imply.

#include <cstdint>
#include <span>
#include <vector>

namespace mgpu::device {

/// One node: what to call.
struct Op {
  void (*function)(void *) = nullptr;
  void *context = nullptr;
};

/// Wait until `lane` has published `ordinal` times in this replay.
struct LaneWait {
  uint32_t lane = 0, ordinal = 0;
};

/// The waits up to waitEnd, then the calls up to opEnd, then, if set, one
/// publication. Each begins where the previous segment ended.
struct Segment {
  uint32_t waitEnd = 0, opEnd = 0;
  bool publishes = false;
};

struct LaneProgram {
  std::vector<Op> ops;
  std::vector<uint32_t> nodes; ///< the graph node of each op
  std::vector<Segment> segments;
  std::vector<LaneWait> waits;
};

/// Lane 0 ends with a wait for the end of every other lane, so lane 0 done
/// means replay done.
struct Program {
  std::vector<LaneProgram> lanes;
  std::vector<Op> serial; ///< every op in creation order
  uint32_t numActive = 0; ///< lanes with at least one op
};

struct ProgramNode {
  uint32_t lane = 0;
  Op op;
  std::vector<uint32_t> dependencies; ///< earlier nodes
};

/// Nodes are in a topological order. Costs O(edges x lanes).
Program buildProgram(std::span<const ProgramNode> nodes, uint32_t numLanes);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_LANEPROGRAM_H
