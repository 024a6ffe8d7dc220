// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PLANNER_RANDOMPROBLEM_H
#define MGPU_TESTS_UNIT_PLANNER_RANDOMPROBLEM_H

#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::testing {

struct RandomProblemOptions {
  uint32_t nodes = 6;
  uint32_t resources = 2;
  uint32_t mostUses = 1;     ///< resources of one node
  bool isCumulative = false; ///< the first resource has shares
  uint32_t edgeOneIn = 3;    ///< each pair has an edge with this chance
};
/// Nodes of 1 to 9 us, some of no time at all. Every node has an output that
/// its successors use, on the device of its first resource.
Problem randomProblem(uint64_t seed, const RandomProblemOptions &options);

/// The least makespan, by every order of the nodes: each node in turn takes the
/// first place where its resources allow it. One of these schedules is optimal.
double leastMakespan(const Problem &problem);

/// The same within the memory of the devices, by every order in which nodes may
/// start: each starts as soon as the one before it has, its resources are free
/// and its buffers fit. 1e9 where no order fits.
double leastMakespanWithin(const Problem &problem);

} // namespace mgpu::planner::testing

#endif // MGPU_TESTS_UNIT_PLANNER_RANDOMPROBLEM_H
