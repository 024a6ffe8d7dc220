// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/WindowSearch.h"

#include "planner/schedule/search/ListPass.h"

#include <limits>

namespace mgpu::planner::search {

static constexpr double farthestMove = 1; // of a window

WindowSearch::WindowSearch(const Problem &problem, uint64_t seed)
    : problem(problem), noise(problem, seed, farthestMove),
      repairer(problem, ~seed), decoder(problem) {
  current.makespan = std::numeric_limits<double>::infinity();
}

/// Turns `trial`, a schedule read in one direction, into one read in the other
/// that is no longer: each node as early as it can be there.
double WindowSearch::justify(Direction direction, double makespan) {
  noise.turn(trial, makespan, direction, order);
  return decoder.decode(order, opposite(direction), trial);
}

void WindowSearch::keepIfNotLonger(double makespan) {
  if (makespan > current.makespan)
    return;
  current.starts.swap(trial);
  current.makespan = makespan;
}

void WindowSearch::listPasses(const std::vector<double> &heads,
                              const std::vector<double> &tails) {
  for (Direction direction : {Direction::Forward, Direction::Backward}) {
    const bool isForward = direction == Direction::Forward;
    double makespan =
        listPass(problem, direction, isForward ? tails : heads, trial);
    if (isForward)
      makespan = justify(Direction::Forward, makespan);
    keepIfNotLonger(justify(Direction::Backward, makespan));
  }
}

void WindowSearch::move() {
  const Direction direction =
      noise.random.below(2) ? Direction::Forward : Direction::Backward;
  noise.disturb(current, direction, order);
  double makespan = decoder.decode(order, direction, trial);
  if (direction == Direction::Forward)
    makespan = justify(Direction::Forward, makespan);
  keepIfNotLonger(justify(Direction::Backward, makespan));
}

void WindowSearch::repair(exact::Budget &budget) {
  if (!repairer.improve(current, trial, budget))
    return;
  noise.sort(trial, current.makespan, order);
  const double makespan = decoder.decode(order, Direction::Forward, trial);
  keepIfNotLonger(
      justify(Direction::Backward, justify(Direction::Forward, makespan)));
}

} // namespace mgpu::planner::search
