// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/rcpsp/Solver.h"

#include "planner/schedule/rcpsp/Bounds.h"
#include "planner/schedule/rcpsp/Genetic.h"
#include "planner/schedule/rcpsp/ListPass.h"

namespace mgpu::planner::rcpsp {

Solution solve(const Problem &problem, Budget budget, uint64_t seed) {
  Solution solution;
  solution.starts = listPass(problem);
  solution.makespan = problem.makespan(solution.starts);
  solution.lowerBound = energeticPaths(problem).length;
  if (solution.proven() || budget.exhausted())
    return solution;
  GeneticSearch genetic(problem, seed);
  genetic.adopt(solution.starts);
  while (genetic.makespan() > solution.lowerBound && !budget.exhausted()) {
    genetic.step();
    budget.spend();
  }
  solution.starts = genetic.best();
  solution.makespan = genetic.makespan();
  solution.nodes = budget.spentNodes();
  return solution;
}

} // namespace mgpu::planner::rcpsp
