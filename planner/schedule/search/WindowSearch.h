// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H

#include "planner/schedule/exact/DisjunctiveSearch.h"
#include "planner/schedule/problem/Problem.h"
#include "planner/schedule/search/Decoders.h"
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

/// Large-neighbourhood search with the exact search as repair: the nodes of a
/// few successive starts get the best order there is, while all others keep
/// theirs. Every longest chain of a schedule crosses every moment, so an order
/// that is shorter within one window makes the whole shorter, unless a chain
/// passes beside it. It takes problems of unit streams alone.
class WindowRepair {
public:
  WindowRepair(const Problem &problem, uint64_t seed)
      : problem(problem), random(seed) {}

  /// Tries one window of `schedule`. True: the nodes in the order of `keys` are
  /// shorter. Spends a node of the budget for each branch.
  bool improve(const Schedule &schedule, std::vector<double> &keys,
               exact::Budget &budget);

private:
  void look(const Schedule &schedule);
  template <typename Value>
  std::vector<double> nearest(const std::vector<bool> &wanted, int64_t at,
                              int step, Value value) const;
  DisjunctiveSearch::Around aroundOf(std::span<const uint32_t> window,
                                     uint32_t from, uint32_t end,
                                     const Schedule &schedule) const;
  Result<Problem> partOf(std::span<const uint32_t> window) const;

  const Problem &problem;
  Random random;
  std::vector<double> seen;     ///< the starts that the rest is of
  std::vector<uint32_t> order;  ///< by start
  std::vector<uint32_t> places; ///< by node: its place in the order
  std::vector<double> tails;    ///< by node
  std::vector<uint32_t> last;   ///< scratch: by resource
};

/// Ever shorter schedules of one problem; memory is not looked at. It starts
/// from list passes, forward and backward. Then a move puts noise on the order
/// of one window of time, decodes it with insertion and justifies the result
/// (Li and Willis 1992); that stays if it is not longer. One seed, one sequence
/// of moves.
class WindowSearch {
public:
  WindowSearch(const Problem &problem, uint64_t seed);
  WindowSearch(const WindowSearch &) = delete;

  /// List passes, which may be made with several priorities. By node, in
  /// microseconds: what must pass until its end, and from its start on.
  void listPasses(const std::vector<double> &heads,
                  const std::vector<double> &tails);
  /// One step; there is a schedule already.
  void move();
  /// Searches by WindowRepair, for a problem of unit streams.
  void repair(exact::Budget &budget);
  /// A schedule found elsewhere; longer ones are ignored.
  void adopt(const Schedule &schedule) {
    if (schedule.makespan < current.makespan)
      current = schedule;
  }

  const Schedule &best() const { return current; }

private:
  double justify(Direction direction, double makespan);
  void keepIfNotLonger(double makespan);

  const Problem &problem;
  WindowNoise noise;
  WindowRepair repairer;
  SerialDecoder decoder;
  std::vector<double> trial;
  std::vector<uint32_t> order;
  Schedule current;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H
