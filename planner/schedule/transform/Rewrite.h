// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H

// What the transforms share.

#include "planner/schedule/transform/Transform.h"

#include <functional>

namespace mgpu::planner {

/// Replaces the nodes by `nodes`, in program order, and finds the dependences
/// again.
void replaceNodes(Dag &dag, std::vector<DagNode> nodes);

/// Where a buffer's bytes are now: `offset` bytes into `buffer`.
struct NewPlace {
  BufferId buffer;
  int64_t offset = 0;
};
/// Sends every mention of the buffers that `moved` knows elsewhere.
void moveBuffers(DagNode &node,
                 const std::function<std::optional<NewPlace>(BufferId)> &moved);

/// The bytes a collective's members touch.
std::vector<BufferUse> usesOf(const CollectiveCall &call);

/// Part `index` of `count` equal ones of a contiguous box; nothing where it
/// does not divide.
std::optional<Box> partOf(const Box &box, size_t index, size_t count);

int64_t bytesOf(const Box &box);
/// Whether `box` is all of the buffer.
bool isWhole(const Box &box, const Buffer &buffer);

// One .cpp each; the number of changes.
uint32_t dropCopies(Dag &dag);
uint32_t scatterReduces(Dag &dag);
uint32_t bucketReduces(Dag &dag);
uint32_t splitReduces(Dag &dag);
uint32_t chunkCollectives(Dag &dag, uint32_t count);
/// `counts`: one per group.
uint32_t chunkCollectives(Dag &dag, const std::vector<uint32_t> &counts);
std::vector<std::vector<NodeId>> programChunkGroups(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H
