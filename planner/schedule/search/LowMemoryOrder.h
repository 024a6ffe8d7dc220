// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_LOWMEMORYORDER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_LOWMEMORYORDER_H

#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// A topological order that needs little memory when run one node at a time.
/// Two rules, both local: a node that makes no less than it reads (weights
/// gathered or converted, constants) waits until something that is not such a
/// node needs it; a ready node that frees more than it makes runs at once.
/// Otherwise in the order of the problem. Bytes of all devices count alike.
std::vector<uint32_t> lowMemoryOrder(const Problem &problem);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_LOWMEMORYORDER_H
