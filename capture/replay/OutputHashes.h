// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_REPLAY_OUTPUTHASHES_H
#define MGPU_CAPTURE_REPLAY_OUTPUTHASHES_H

// Hashes of what a replay left in memory, to compare two runs of one program
// that have it in different places.

#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"
#include "support/Result.h"
#include "support/WordHash.h"

#include <functional>
#include <span>
#include <vector>

namespace mgpu::capture {

/// Whether replays do the node, and not the load or the fetch.
inline bool isReplayed(const planner::DagNode &node) {
  return node.phase != planner::Phase::Load &&
         node.phase != planner::Phase::Fetch;
}

/// Calls `visit(first, last)` for each run of bytes of a box, in row-major
/// order, with its place in the buffer.
template <typename Visit>
void visitRuns(const Box &box, Visit visit, size_t axis, int64_t at) {
  const size_t rank = box.sizes.size();
  if (axis == rank ||
      (axis + 1 == rank && box.strides[axis] == int64_t(box.elementBytes))) {
    const int64_t count = axis == rank ? 1 : box.sizes[axis];
    return visit(at, at + count * int64_t(box.elementBytes));
  }
  for (int64_t k = 0; k < box.sizes[axis]; ++k)
    visitRuns(box, visit, axis + 1, at + k * box.strides[axis]);
}
template <typename Visit>
void visitRuns(const Box &box, Visit visit) {
  visitRuns(box, visit, 0, box.offset);
}

/// Adds the elements of a box of memory that begins at `base`.
void addBox(WordHash &hash, const std::byte *base, const Box &box);

/// By node, what it wrote, and by buffer that outlives a replay, all its bytes;
/// 0 where there is nothing. The hashes of several processes are added.
struct OutputHashes {
  std::vector<uint64_t> nodes, buffers;

  /// `read` gives a buffer's bytes where the host reaches them, until it is
  /// called again; none of a buffer that is not here. It is asked for buffers
  /// that replays write.
  using Read =
      std::function<Result<std::span<const std::byte>>(planner::BufferId)>;
  static Result<OutputHashes> of(const planner::Dag &dag, const Read &read);
  void add(const OutputHashes &other);
};

/// The buffers that nodes of a replay write, by BufferId.
std::vector<bool> replayWrites(const planner::Dag &dag);

/// The nodes whose whole output is in memory when a replay has ended, by
/// NodeId: nothing was put in its place.
std::vector<bool> lastingOutputs(const planner::Dag &dag,
                                 const planner::Plan &plan);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_REPLAY_OUTPUTHASHES_H
