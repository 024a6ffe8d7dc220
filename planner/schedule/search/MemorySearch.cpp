// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemorySearch.h"

#include "planner/schedule/search/LowerPeak.h"

namespace mgpu::planner::search {

// One move in so many is backward.
static constexpr uint64_t backwardOneIn = 3;
// A move goes this share of its window at most: sequences that fit are near
// each other.
static constexpr double nearMove = 0.3;

MemorySearch::MemorySearch(const Problem &problem, uint64_t seed, Visit visit)
    : problem(problem), seed(seed), visit(std::move(visit)),
      noise(problem, seed, nearMove), decoder(problem), serial(problem) {}

bool MemorySearch::start(std::vector<uint32_t> &sequence,
                         const std::vector<uint64_t> &newLimits,
                         const exact::Budget &budget) {
  if (!lowerPeak(problem, newLimits, seed, budget, sequence) ||
      !decoder.decode(sequence, newLimits, trial.starts))
    return false;
  limits = newLimits;
  current = {trial.starts, decoder.makespan()};
  return true;
}

void MemorySearch::move() {
  if (noise.random.below(backwardOneIn) == 0) {
    noise.disturb(current, Direction::Backward, order);
    double makespan = serial.decode(order, Direction::Backward, trial.starts);
    noise.turn(trial.starts, makespan, Direction::Backward, order);
  } else {
    noise.disturb(current, Direction::Forward, order);
  }
  if (!decoder.decode(order, limits, trial.starts))
    return;
  trial.makespan = decoder.makespan();
  if (visit)
    visit(trial, decoder.peaks());
  if (trial.makespan <= current.makespan)
    std::swap(current, trial);
}

} // namespace mgpu::planner::search
