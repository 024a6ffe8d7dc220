// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_BOUNDS_H
#define MGPU_PLANNER_SCHEDULE_EXACT_BOUNDS_H

#include "planner/schedule/exact/ProjectProblem.h"

namespace mgpu::planner::exact {

/// Heads and tails made longer by resources: before an activity (after it) lies
/// the work of all that precedes (follows) it, on each resource no faster than
/// its capacity. `length` is the bound they give: the greatest head + duration
/// + tail, the critical path and the whole work per resource among it. Integer
/// times, so work is rounded up. O(n^2 / 64 * edges + n^2 * resources).
Paths energeticPaths(const Problem &problem);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_BOUNDS_H
