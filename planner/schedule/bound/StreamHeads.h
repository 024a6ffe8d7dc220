// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_BOUND_STREAMHEADS_H
#define MGPU_PLANNER_SCHEDULE_BOUND_STREAMHEADS_H

#include "planner/certificate/Certificate.h"

namespace mgpu::planner {

/// Beyond this many nodes heads are longest paths alone: the sets of ancestors
/// take nodes^2 / 8 bytes, and looking them through nodes^2 steps.
inline constexpr uint32_t maxStreamHeadNodes = 30000;

/// Heads by stream (backward: tails). No schedule starts node j before
///   head(j) = max(head(p) + d(p) of each predecessor p,
///                 t + the work of {i in A(j) on r, head(i) >= t}
///                   of each resource r and time t)
/// where A(j) are all ancestors of j: all of that set starts at or after t,
/// takes its work of the resource, and ends before j. On a unit stream the work
/// is the duration. Each claim has the reason that gave it. O(nodes^2) bit
/// tests and nodes^2 / 8 bytes at most; a problem of more than `mostNodes` gets
/// longest paths alone, in O(edges).
std::vector<Claim> streamHeads(const Problem &problem, Direction direction,
                               uint32_t mostNodes = maxStreamHeadNodes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_BOUND_STREAMHEADS_H
