// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_BOUND_MEMORYTIME_H
#define MGPU_PLANNER_SCHEDULE_BOUND_MEMORYTIME_H

#include "planner/schedule/bound/OneMachine.h"

namespace mgpu::planner {

/// The strongest argument of the memory of a device: each buffer is a job of
/// that machine, for as long as it is live at the least, by its share of the
/// memory. For `small` it tries 0 and what makes the larger buffers count as
/// all of it. Nothing where the memory has no limit, or holds all buffers at
/// once.
std::optional<std::pair<double, MemoryArgument>>
memoryTime(const Certificate &claims, const Problem &problem, uint32_t device);

/// The buffers that an argument counts, and the sum of their times by shares.
std::pair<uint32_t, double> countedBy(const MemoryArgument &argument,
                                      const Certificate &claims,
                                      const Problem &problem);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_BOUND_MEMORYTIME_H
