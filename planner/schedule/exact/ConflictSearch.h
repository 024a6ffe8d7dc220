// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_CONFLICTSEARCH_H
#define MGPU_PLANNER_SCHEDULE_EXACT_CONFLICTSEARCH_H

#include "planner/schedule/exact/BoundTrail.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/exact/ProjectProblem.h"

namespace mgpu::planner::exact {

/// Exact search by lazy clause generation: constraint propagation on the bounds
/// of the starts, each step with an explanation; a dead end is traced back to
/// the bounds that cause it (first unique implication point) and forbidden for
/// good by a learnt clause. After Schutt, Feydy, Stuckey and Wallace,
/// "Explaining the cumulative propagator" (2011), which closed J30 with it.
/// Propagators:
/// - precedences;
/// - a choice "i before j" for each pair that some resource cannot run at once;
/// - the timetable of each resource: what must run at a time whatever the
///   starts, with pointwise explanations.
/// Starts lie within the heads and tails of energeticPaths(), so bounds that
/// the resources' work gives need no explanation.
/// Branches on the bounds most active in recent conflicts (VSIDS), in the
/// direction of the best schedule, else starts the earliest activity; restarts
/// by Luby's sequence. It looks only for schedules better than the best known,
/// so that having nothing left proves the best optimal.
class ConflictSearch {
public:
  /// Bounds of starts are kept one by one: an instance with more than maxAtoms
  /// of them below `makespan`, or with a capacity of 32,768 and more, is not
  /// for this search.
  static constexpr uint64_t maxAtoms = 2'000'000;
  static bool suits(const Problem &problem, Time makespan);

  /// `best` is a schedule to improve upon; suits() holds of its makespan.
  ConflictSearch(const Problem &problem, const Starts &best);
  ConflictSearch(const ConflictSearch &) = delete;

  enum class Outcome : uint8_t {
    Proven,   ///< no schedule is shorter than best()
    Improved, ///< best() is shorter than it was
    Paused,   ///< `conflicts` met, or the budget ended
  };
  /// Goes on until something of the above; spends one node per conflict.
  Outcome run(uint64_t conflicts, Budget &budget);

  /// A shorter schedule found elsewhere; longer ones are ignored.
  void adopt(const Starts &starts);

  const Starts &best() const { return bestStarts; }
  Time makespan() const { return bestMakespan; }

private:
  struct Pair {
    uint32_t first, second, choice; ///< choice: 1 = first before second
  };
  struct Clause {
    std::vector<Literal> literals; ///< the first two are watched
    uint32_t glue = 0;             ///< levels when learnt; fewer are worth more
  };
  struct Watch {
    uint32_t clause;
    Literal other; ///< a literal of the clause; if true, it need not be read
  };

  void makePairs();
  bool limitStarts();
  bool propagate();
  bool propagateClauses(Literal falsified);
  bool propagateBound(uint32_t variable, bool upper);
  bool propagatePair(const Pair &pair);
  bool orderPair(uint32_t before, uint32_t after, Literal choice);
  bool propagateTimetable(uint32_t word);
  void explainTimetable(Time t, uint32_t word, uint64_t shortFields,
                        uint32_t except);
  uint64_t fieldsShort(uint32_t activity, Time t, uint32_t word, Time from,
                       Time to) const;
  bool filterStart(uint32_t activity, uint32_t word, Time from, Time to);
  bool filterEnd(uint32_t activity, uint32_t word, Time from, Time to);
  bool imply(Literal literal);
  bool raiseLower(uint32_t variable, Time low);
  bool dropUpper(uint32_t variable, Time high);
  static void pushReason(std::vector<Literal> &literals, Literal literal);
  bool learn();
  void addNeed(Literal literal);
  void reasonOf(uint32_t entry, std::vector<Literal> &literals) const;
  bool isRedundant(uint32_t side);
  void attach(uint32_t clause);
  void reduceClauses();
  void bump(Literal literal);
  bool decide();
  void backtrack(uint32_t level);
  void restoreHeap(uint32_t variable, Time low, Time high);
  bool record();
  uint32_t popHeap();

  const Problem &problem;
  BoundTrail trail;
  Starts bestStarts;
  Time bestMakespan;
  Paths paths;
  std::vector<Pair> pairs;
  std::vector<std::vector<uint32_t>> pairsOf; ///< by start, by choice
  std::vector<Clause> clauses;
  std::vector<std::vector<Watch>> watches; ///< by literal that becomes false
  std::vector<Literal> reason, redundant;  ///< scratch
  bool infeasible = false;

  // Timetable: free fields with guard bits, as Profile keeps them.
  uint32_t words = 0;
  uint64_t guard = 0;
  std::vector<uint64_t> needs, whole, table;
  std::vector<uint32_t> running; ///< scratch
  bool timetableStale = true;

  // Conflict analysis.
  std::vector<Literal> conflict;
  std::vector<int32_t> needEntry; ///< by side, -1 = not needed
  std::vector<Time> needValue;
  std::vector<uint32_t> needSides;
  uint32_t currentNeeds = 0;

  // Branching: a heap of atoms by activity.
  std::vector<double> activity;
  std::vector<int32_t> heapPlace; ///< -1 out of the heap
  std::vector<uint8_t> wasBumped;
  std::vector<uint32_t> heap;
  double activityStep = 1;
  void heapUp(size_t at);
  void heapDown(size_t at);

  uint64_t restarts = 0, untilRestart = 0;
  size_t clauseLimit = 4000;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_CONFLICTSEARCH_H
