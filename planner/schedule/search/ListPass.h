// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_LISTPASS_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_LISTPASS_H

#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// List scheduling: whenever a resource is idle it starts the ready node of the
/// greatest priority. Read backward, `starts` are the times from a node's end
/// to the end of all. Returns the makespan. O((nodes + edges) log nodes).
double listPass(const Problem &problem, Direction direction,
                const std::vector<double> &priorities,
                std::vector<double> &starts);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_LISTPASS_H
