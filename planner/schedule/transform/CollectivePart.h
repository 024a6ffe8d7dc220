// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_COLLECTIVEPART_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_COLLECTIVEPART_H

// A collective as several, each of a range of its elements.

#include "planner/dag/Dag.h"

#include <optional>

namespace mgpu::planner {

/// The call of a collective that can be cut. An all_reduce of a file is a call
/// of one member, between the one buffer that it reads and the one that it
/// writes; nothing of a file's other collectives, nor of other nodes.
std::optional<CollectiveCall> callOf(const DagNode &node);

/// Whether a member's send (or recv) box says something; as Program::check().
bool sends(const CollectiveCall &call, size_t rank);
bool receives(const CollectiveCall &call, size_t rank);

/// How many equal slices, one per peer, the sides of a member's part have.
struct CollectiveSlices {
  size_t send = 1, recv = 1;
};
CollectiveSlices slicesOf(const CollectiveCall &call, size_t rank);

/// Elements of a slice, which all ranks must agree on; 0 where they do not.
int64_t sliceElements(const CollectiveCall &call);

/// The collective as several, each of a range of every slice's elements: `way`
/// says where they begin, and where the last ends. Empty where the order of the
/// parts would show. sliceElements() of the call is not 0.
std::vector<CollectiveCall> cutCollective(const CollectiveCall &call,
                                          const std::vector<int64_t> &way);

/// A node that does `call`, one of the `of` calls that `node` was cut into. The
/// caller prices what is of a file.
DagNode collectivePart(const DagNode &node, const CollectiveCall &call,
                       uint32_t of);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_COLLECTIVEPART_H
