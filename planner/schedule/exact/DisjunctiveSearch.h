// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_DISJUNCTIVESEARCH_H
#define MGPU_PLANNER_SCHEDULE_EXACT_DISJUNCTIVESEARCH_H

#include "planner/certificate/Certificate.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// Exact search for small problems of unit streams, with durations as they are.
/// It branches on which of two nodes of one stream goes first, and looks only
/// for schedules shorter than the best known, so that having nothing left
/// proves the best optimal. After each branch, until nothing changes:
/// - heads and tails by stream (planner/schedule/bound/MakespanBound.h), with
///   what was decided as edges;
/// - a node that cannot go before another in time goes after it;
/// - a branch ends where a stream's preemptive bound (Jackson) is too long.
/// Alike nodes go in the order of the problem. Memory is not its business.
class DisjunctiveSearch {
public:
  static constexpr uint32_t maxNodes = maxSearchedNodes;
  static bool suits(const Problem &problem);

  /// The surroundings of a problem that is a part of another, by node: times
  /// that must pass before its start and after its end. Empty: none.
  struct Around {
    std::vector<double> heads, tails;
  };

  /// `best` is to be improved upon; its makespan counts what is around it.
  DisjunctiveSearch(const Problem &problem, Schedule best, Around around = {});
  DisjunctiveSearch(const DisjunctiveSearch &) = delete;

  /// Goes on for so many branches, one node of the budget each. True: best() is
  /// optimal.
  bool run(uint64_t branches, exact::Budget &budget);
  /// A shorter schedule found elsewhere; longer ones are ignored.
  void adopt(const Schedule &schedule);

  const Schedule &best() const { return shortest; }
  /// The branches so far, which once run() was true prove that best() is
  /// optimal: what was decided of worse schedules holds of it as well.
  const SearchArgument &proof() const { return witness; }

private:
  /// Who must precede whom: rows of bits, transitively closed.
  struct State {
    std::vector<uint64_t> before, after;
  };

  uint64_t *row(std::vector<uint64_t> &bits, uint32_t node) const {
    return bits.data() + size_t(node) * words;
  }
  static bool has(const uint64_t *row, uint32_t node) {
    return row[node / 64] >> (node % 64) & 1;
  }
  void addEdge(State &state, uint32_t from, uint32_t to) const;
  void orderAlike(State &state) const;
  void measure(State &state, Direction direction, std::vector<double> &claims);
  bool isTooLong(uint32_t resource) const;
  bool propagate(State &state);
  bool pick(State &state, uint32_t &first, uint32_t &second);
  double limit() const;

  const Problem &problem;
  const Around around;
  const size_t words;
  std::vector<std::pair<uint32_t, uint32_t>> pairs; ///< that share a stream
  std::vector<std::vector<uint32_t>> users;         ///< by resource
  std::vector<State> open;
  Schedule shortest;
  SearchArgument witness;
  // Scratch.
  std::vector<double> heads, tails;
  std::vector<uint32_t> order;
  std::vector<std::vector<uint32_t>> done; ///< by resource, by rising claim
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_EXACT_DISJUNCTIVESEARCH_H
