// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/Solver.h"

#include "planner/schedule/exact/BidirectionalPass.h"
#include "planner/schedule/exact/Bounds.h"
#include "planner/schedule/exact/ConflictSearch.h"
#include "planner/schedule/exact/GeneticSearch.h"

#include <algorithm>
#include <memory>

namespace mgpu::planner::exact {

// Most instances close in the first turn of the exact search. What stays open
// of 30 activities it closes soon after, so it has most of the time there; with
// more it seldom does, so the genetic search's turns grow with the third power
// of the activities, and have most of half a second from 60 on.
static constexpr uint32_t warmUp = 1000;
static constexpr uint64_t firstConflicts = 1000;
static uint64_t geneticTurn(uint64_t n) {
  return std::clamp<uint64_t>(n * n * n / 16, 1000, 100'000);
}

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
  uint64_t conflicts = firstConflicts, turn = geneticTurn(problem.size());
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
    for (uint64_t k = 0; k < turn && !budget.exhausted() &&
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

} // namespace mgpu::planner::exact
