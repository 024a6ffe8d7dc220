// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H

// The memory that every schedule needs, and what is said where it is not there.

#include "planner/plan/Plan.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// A proof that some memory is needed, whatever the schedule.
struct MemoryBound {
  uint64_t bytes = 0; ///< live when `node` starts, at the least: resident
  uint32_t node = 0;  ///< bytes, buffers that it makes, and those of `live`
  std::vector<uint32_t> live; ///< buffers, the largest first
};

/// When `node` starts, all it depends on has ended, it and all that depends on
/// it has not started. This allows several sets of ended nodes; the one with
/// the least live on the device is a minimum cut (Picard 1976: closures; a
/// buffer costs its bytes if its first user is in the set and another is not).
/// No schedule has less live at that moment. Max-flow by Dinic's algorithm.
MemoryBound memoryBoundAt(const Problem &problem, uint32_t device,
                          uint32_t node);

/// The largest of the bounds at the `candidates` steps of `order`, run one at a
/// time, that have most live on the device, tried from the largest on; ends
/// early once one exceeds `enough`.
MemoryBound memoryBound(const Problem &problem, uint32_t device,
                        const std::vector<uint32_t> &order, uint32_t candidates,
                        uint64_t enough);

/// Why no plan of a frozen problem was found that fits its device: the step at
/// which too much is live in every order, what is live there and how much is
/// missing, or that this is not proven. `lowest` is the order of the least peak
/// that was found.
Error frozenDoesNotFit(const Problem &problem, const Dag &dag,
                       const std::vector<uint32_t> &lowest);
/// Says this of a program, in bytes of each device. `smallest` is the plan of
/// the smallest arena.
Error doesNotFit(std::span<const PhaseProblem> phases, const Plan &smallest,
                 const Dag &dag, uint64_t limit);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
