// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWNOISE_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWNOISE_H

#include "planner/schedule/problem/Problem.h"
#include "support/Random.h"

namespace mgpu::planner::search {

/// Orders the nodes of a problem by keys, the least first, so that each comes
/// after what it needs. An object keeps its scratch memory.
class KeyOrder {
public:
  explicit KeyOrder(const Problem &problem) : problem(problem) {}

  /// Raises keys that are below those of what the node needs, then orders. Keys
  /// are times from 0 to `longest`, seen in 2^33 steps; of equal keys what
  /// comes first in the problem goes first. O(nodes + edges): a radix sort.
  void order(std::vector<double> &keys, double longest, Direction direction,
             std::vector<uint32_t> &out);

private:
  const Problem &problem;
  std::vector<std::pair<uint64_t, uint32_t>> items, other;
};

/// The step that the searches repeat. It takes a schedule's own order and one
/// random window of time, on one resource or on all. A random share of the
/// nodes there moves by random times within the window.
class WindowNoise {
public:
  /// A node moves by `farthestMove` of its window at most.
  WindowNoise(const Problem &problem, uint64_t seed, double farthestMove)
      : random(seed), problem(problem), farthestMove(farthestMove),
        sorter(problem) {}

  /// Backward, the order is by the nodes' ends, the last first.
  void disturb(const Schedule &schedule, Direction direction,
               std::vector<uint32_t> &order);
  /// The order of a schedule for the other direction. `starts` are read in
  /// `direction`, from which end times count.
  void turn(const std::vector<double> &starts, double makespan,
            Direction direction, std::vector<uint32_t> &order);

  /// The order of given keys, which are times up to `makespan`.
  void sort(std::vector<double> &given, double makespan,
            std::vector<uint32_t> &order) {
    sorter.order(given, makespan, Direction::Forward, order);
  }

  Random random;

private:
  const Problem &problem;
  const double farthestMove;
  KeyOrder sorter;
  std::vector<double> keys;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWNOISE_H
