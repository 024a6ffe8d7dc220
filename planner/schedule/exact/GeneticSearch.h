// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_GENETICSEARCH_H
#define MGPU_PLANNER_SCHEDULE_EXACT_GENETICSEARCH_H

#include "planner/schedule/exact/Justification.h"
#include "support/Random.h"

namespace mgpu::planner::exact {

/// A steady-state genetic algorithm over activity lists. Every child is decoded
/// by the serial scheme and improved by double justification. After
/// - Hartmann, "A competitive genetic algorithm for resource-constrained
///   project scheduling" (1998): activity lists, two-point crossover, adjacent
///   swaps, a sampled first population;
/// - Valls, Ballestin and Quintanilla, "A hybrid genetic algorithm for the
///   resource-constrained project scheduling problem" (2008): justification of
///   every schedule, crossover that keeps the mother's busiest stretch;
/// - Debels and Vanhoucke (2005, 2007): that stretch as a window of time, the
///   rest keyed by the father;
/// - Harik and Lobo, "A parameter-less genetic algorithm" (1999): populations
///   one after the other, each larger.
/// One problem, one seed: one sequence of schedules.
class GeneticSearch {
public:
  GeneticSearch(const Problem &problem, uint64_t seed);
  GeneticSearch(const GeneticSearch &) = delete;

  /// Makes one more individual: three schedules, a decoding and its two
  /// justifications. Returns whether it is the best so far.
  bool step();
  /// Offers a schedule found elsewhere.
  void adopt(const Starts &starts);

  const Starts &best() const { return bestStarts; }
  Time makespan() const { return bestMakespan; }

private:
  struct Individual {
    Starts starts;
    std::vector<uint32_t> list; ///< by start
    Time makespan = 0;
    int64_t lateness = 0; ///< the lower goes first if makespans are equal
  };

  void sample(Individual &child);
  void crossLists(const Individual &mother, const Individual &father);
  void crossWindow(const Individual &mother, const Individual &father);
  void mutate();
  bool finish(Individual &child);
  const Individual &pick();
  static bool better(const Individual &a, const Individual &b) {
    return a.makespan != b.makespan ? a.makespan < b.makespan
                                    : a.lateness < b.lateness;
  }
  void place(Individual &&child);

  const Problem &problem;
  ScheduleGenerator generator;
  Justifier justifier;
  Random rng;
  std::vector<Keys> rules;
  std::vector<Individual> population;
  std::vector<uint64_t> hashes; ///< their starts'; asked for every child
  uint32_t populationSize;      ///< when full; grows at each new beginning
  std::vector<uint32_t> list;
  Keys keys;
  std::vector<uint8_t> taken;
  std::vector<double> load; ///< per activity: share of the capacities, summed
  uint64_t sinceBest = 0;
  Starts bestStarts;
  Time bestMakespan = 0;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_GENETICSEARCH_H
