// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_SOLVER_H
#define MGPU_PLANNER_SCHEDULE_EXACT_SOLVER_H

#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/exact/ProjectProblem.h"

namespace mgpu::planner::exact {

struct Solution {
  Starts starts;
  Time makespan = 0;
  Time lowerBound = 0; ///< no schedule is shorter
  uint64_t nodes = 0;  ///< spent; a node budget of as many gives this again
  bool proven() const { return makespan == lowerBound; }
};

/// The first schedule (listPass) and bound, then ever better ones until the
/// budget ends or the two meet: the genetic and the exact search in turns, the
/// genetic one's turns the longer the larger the problem. Same problem, seed
/// and nodes: same solution.
Solution solve(const Problem &problem, Budget budget, uint64_t seed = 1);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_SOLVER_H
