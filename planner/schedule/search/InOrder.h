// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_INORDER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_INORDER_H

#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/problem/Schedule.h"

namespace mgpu::planner::search {

/// Schedules a frozen problem with its kernels in program order, whatever
/// memory that takes. With `early`, collectives start as soon as what they need
/// has ended, the first in the program before others. Else they too are in
/// program order, each once all kernels before it have ended.
Schedule inOrderSchedule(const Problem &problem, bool early);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_INORDER_H
