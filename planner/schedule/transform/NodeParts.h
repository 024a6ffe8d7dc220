// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_NODEPARTS_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_NODEPARTS_H

// A launch as several, each of a part of its grid.

#include "planner/dag/Dag.h"

#include <optional>

namespace mgpu::planner {

/// The blocks of a launch of which all run; of a kernel of a file that says
/// that it can be cut, one along x for each element of the axis. Nothing of
/// other nodes, nor of a launch whose duration is given.
std::optional<Dim3> gridOf(const DagNode &node);

/// Part `index` of `count` along axis 0 (x) to 2 (z), equal but for a block
/// where the grid's size along it is not a multiple of `count`; it is not less.
GridPart partAlong(Dim3 grid, unsigned axis, uint32_t index, uint32_t count);

/// The bytes that the blocks of `part` touch by a use of a launch over `grid`.
/// Where the last block hangs over the end of an array and a guard keeps it
/// from what is beyond, the box ends within that block.
Box boxOfPart(const BufferUse &use, Dim3 grid, const GridPart &part);

/// Whether the launch is the same as `count` launches of its parts along
/// `axis`, whatever their order: no two of them write the same bytes.
bool canPart(const DagNode &node, unsigned axis, uint32_t count);

/// Part `index` of `count` of a launch for which canPart() holds. A part of a
/// file's kernel is not cut again, and the caller prices it.
DagNode kernelPart(const DagNode &node, unsigned axis, uint32_t index,
                   uint32_t count);

// A collective as several, each of a range of its elements.

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

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_NODEPARTS_H
