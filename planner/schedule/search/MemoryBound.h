// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H

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

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
