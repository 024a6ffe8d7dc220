// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_LIST_PATHS_H
#define MGPU_PLANNER_SCHEDULE_LIST_PATHS_H

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// Longest paths within each node's phase, the node itself left out.
struct Paths {
  std::vector<double> head; ///< to the node
  std::vector<double> tail; ///< from the node
};
Paths longestPaths(const Dag &dag, const std::vector<double> &durations);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_LIST_PATHS_H
