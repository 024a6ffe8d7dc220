// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/rcpsp/Solver.h"

#include "planner/schedule/rcpsp/Bounds.h"
#include "planner/schedule/rcpsp/ConflictSearch.h"
#include "planner/schedule/rcpsp/Genetic.h"
#include "planner/schedule/rcpsp/ListPass.h"

#include <memory>

namespace mgpu::planner::rcpsp {

// Of half a second the genetic search has about two thirds on instances that
// stay open; most close in the first turn of the exact one.
static constexpr uint32_t warmUp = 1000, geneticTurn = 7000;
static constexpr uint64_t firstConflicts = 1000;

Solution solve(const Problem &problem, Budget budget, uint64_t seed) {
  Solution solution;
  solution.starts = listPass(problem);
  solution.makespan = problem.makespan(solution.starts);
  solution.lowerBound = energeticPaths(problem).length;
  if (solution.proven() || budget.exhausted())
    return solution;
  GeneticSearch genetic(problem, seed);
  genetic.adopt(solution.starts);
  for (uint32_t k = 0; k < warmUp && genetic.makespan() > solution.lowerBound &&
                       !budget.exhausted();
       ++k) {
    genetic.step();
    budget.spend();
  }
  std::unique_ptr<ConflictSearch> exact;
  if (genetic.makespan() > solution.lowerBound &&
      ConflictSearch::suits(problem, genetic.makespan()))
    exact = std::make_unique<ConflictSearch>(problem, genetic.best());
  // In turns; what one finds the other starts from.
  uint64_t conflicts = firstConflicts;
  while (genetic.makespan() > solution.lowerBound && !budget.exhausted()) {
    if (exact) {
      ConflictSearch::Outcome outcome = exact->run(conflicts, budget);
      if (exact->makespan() < genetic.makespan())
        genetic.adopt(exact->best());
      if (outcome == ConflictSearch::Outcome::Proven)
        solution.lowerBound = genetic.makespan();
      if (outcome != ConflictSearch::Outcome::Paused)
        continue;
      conflicts += conflicts / 8;
    }
    for (uint32_t k = 0; k < geneticTurn && !budget.exhausted() &&
                         genetic.makespan() > solution.lowerBound;
         ++k) {
      genetic.step();
      budget.spend();
    }
    if (exact)
      exact->adopt(genetic.best());
  }
  solution.starts = genetic.best();
  solution.makespan = genetic.makespan();
  solution.nodes = budget.spentNodes();
  return solution;
}

} // namespace mgpu::planner::rcpsp
