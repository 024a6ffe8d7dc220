// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemorySearch.h"

#include "planner/schedule/search/LowerPeak.h"

namespace mgpu::planner::search {

// One move in so many is backward.
static constexpr uint64_t backwardOneIn = 3;
// A move goes this share of its window at most: sequences that fit are near
// each other.
static constexpr double nearMove = 0.3;

MemorySearch::MemorySearch(const Problem &problem, uint64_t seed)
    : problem(problem), seed(seed), noise(problem, seed, nearMove),
      decoder(problem), serial(problem) {}

bool MemorySearch::start(std::vector<uint32_t> &sequence,
                         const std::vector<uint64_t> &newLimits,
                         const rcpsp::Budget &budget) {
  if (!lowerPeak(problem, newLimits, seed, budget, sequence) ||
      !decoder.decode(sequence, newLimits, trial))
    return false;
  limits = newLimits;
  current = {trial, decoder.makespan()};
  return true;
}

void MemorySearch::move() {
  if (noise.random.below(backwardOneIn) == 0) {
    noise.disturb(current, Direction::Backward, order);
    double makespan = serial.decode(order, Direction::Backward, trial);
    noise.turn(trial, makespan, Direction::Backward, order);
  } else {
    noise.disturb(current, Direction::Forward, order);
  }
  if (!decoder.decode(order, limits, trial) ||
      decoder.makespan() > current.makespan)
    return;
  current.starts.swap(trial);
  current.makespan = decoder.makespan();
}

} // namespace mgpu::planner::search
