// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/ConflictSearch.h"

#include "planner/schedule/exact/Bounds.h"

#include <algorithm>

namespace mgpu::planner::exact {

static constexpr uint64_t restartUnit = 250; ///< conflicts

/// 1 1 2 1 1 2 4 ... (Luby, Sinclair and Zuckerman 1993); k from 1.
static uint64_t luby(uint64_t k) {
  for (;;) {
    uint64_t size = 1;
    while (size < k)
      size = 2 * size + 1;
    if (size == k)
      return (size + 1) / 2;
    k -= size / 2;
  }
}

bool ConflictSearch::suits(const Problem &problem, Time makespan) {
  for (uint32_t r = 0; r < problem.numResources(); ++r)
    if (problem.capacity(r) >= 1 << 15)
      return false;
  return uint64_t(problem.size()) * uint64_t(makespan) <= maxAtoms;
}

ConflictSearch::ConflictSearch(const Problem &problem, const Starts &best)
    : problem(problem), bestStarts(best), bestMakespan(problem.makespan(best)),
      paths(energeticPaths(problem)) {
  for (uint32_t a = 0; a < problem.size(); ++a)
    trail.addVariable(paths.heads[a],
                      bestMakespan - paths.tails[a] - problem.duration(a));
  makePairs();
  guard = 0x8000800080008000;
  words = (problem.numResources() + 3) / 4;
  whole.assign(words, guard);
  needs.assign(size_t(problem.size()) * words, 0);
  for (uint32_t r = 0; r < problem.numResources(); ++r) {
    whole[r / 4] += uint64_t(problem.capacity(r)) << (16 * (r % 4));
    for (uint32_t a = 0; a < problem.size(); ++a)
      needs[size_t(a) * words + r / 4] += uint64_t(problem.demand(a, r))
                                          << (16 * (r % 4));
  }
  table.resize(size_t(bestMakespan) + 1);
  watches.resize(size_t(trail.numAtoms()) * 2);
  needEntry.assign(size_t(trail.numVariables()) * 2, -1);
  needValue.assign(needEntry.size(), 0);
  activity.assign(trail.numAtoms(), 0);
  heapPlace.assign(trail.numAtoms(), -1);
  wasBumped.assign(trail.numAtoms(), 0);
  infeasible = !limitStarts();
}

void ConflictSearch::makePairs() {
  uint32_t n = problem.size();
  // What lies after each activity, directly or not.
  std::vector<std::vector<bool>> after(n, std::vector<bool>(n, false));
  const std::vector<uint32_t> &order = problem.topological();
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (uint32_t next : problem.successors(*it)) {
      after[*it][next] = true;
      for (uint32_t far = 0; far < n; ++far)
        if (after[next][far])
          after[*it][far] = true;
    }
  pairsOf.resize(n);
  for (uint32_t a = 0; a < n; ++a)
    for (uint32_t b = a + 1; b < n; ++b) {
      bool clash = false;
      for (uint32_t r = 0; r < problem.numResources(); ++r)
        clash = clash || problem.demand(a, r) >
                             problem.capacity(r) - problem.demand(b, r);
      if (!clash || after[a][b] || after[b][a] || problem.duration(a) == 0 ||
          problem.duration(b) == 0)
        continue;
      uint32_t choice = trail.addVariable(0, 1), pair = uint32_t(pairs.size());
      pairs.push_back({a, b, choice});
      pairsOf.resize(size_t(choice) + 1);
      for (uint32_t x : {a, b, choice})
        pairsOf[x].push_back(pair);
    }
  pairsOf.resize(trail.numVariables());
}

/// At level 0: only what is shorter than the best counts from now on.
bool ConflictSearch::limitStarts() {
  reason.clear();
  for (uint32_t a = 0; a < problem.size(); ++a)
    if (!dropUpper(a, bestMakespan - 1 - paths.tails[a] - problem.duration(a)))
      return false;
  for (uint32_t pair = 0; pair < pairs.size(); ++pair)
    if (!propagatePair(pairs[pair]))
      return false;
  timetableStale = true;
  return propagate();
}

void ConflictSearch::adopt(const Starts &starts) {
  Time makespan = problem.makespan(starts);
  if (makespan >= bestMakespan || infeasible)
    return;
  bestStarts = starts;
  bestMakespan = makespan;
  backtrack(0);
  infeasible = !limitStarts();
}

/// All starts are fixed: keeps them. False if nothing better can be.
bool ConflictSearch::record() {
  for (uint32_t a = 0; a < problem.size(); ++a)
    bestStarts[a] = trail.lower(a);
  bestMakespan = problem.makespan(bestStarts);
  backtrack(0);
  infeasible = !limitStarts();
  return !infeasible;
}

ConflictSearch::Outcome ConflictSearch::run(uint64_t conflicts,
                                            Budget &budget) {
  if (infeasible)
    return Outcome::Proven;
  for (uint32_t steps = 0;; ++steps) {
    if (propagate()) {
      if (steps % 64 == 63 && budget.exhausted())
        return Outcome::Paused;
      if (!decide())
        return record() ? Outcome::Improved : Outcome::Proven;
      continue;
    }
    budget.spend();
    if (!learn()) {
      infeasible = true;
      return Outcome::Proven;
    }
    bool pause = --conflicts == 0 || budget.exhausted();
    if (untilRestart == 0 || --untilRestart == 0) {
      untilRestart = luby(++restarts) * restartUnit;
      backtrack(0);
      if (clauses.size() > clauseLimit)
        reduceClauses();
    }
    if (pause)
      return Outcome::Paused;
  }
}

void ConflictSearch::backtrack(uint32_t level) {
  if (trail.level() <= level)
    return;
  while (trail.level() > level) {
    while (trail.size() > trail.levelBegin()) {
      const BoundTrail::Entry &entry = trail.entry(trail.size() - 1);
      restoreHeap(entry.side / 2, std::min(entry.before, entry.after),
                  std::max(entry.before, entry.after));
      trail.undo();
    }
    trail.closeLevel();
  }
  trail.next = trail.size();
  timetableStale = true;
}

bool ConflictSearch::decide() {
  while (!heap.empty()) {
    Literal literal = 2 * popHeap();
    if (trail.isTrue(literal) || trail.isFalse(literal))
      continue;
    uint32_t x = trail.variable(literal);
    bool positive = false;
    if (x < problem.size()) {
      positive = bestStarts[x] >= trail.value(literal);
    } else {
      const Pair &pair = pairs[x - problem.size()];
      positive = bestStarts[pair.first] < bestStarts[pair.second];
    }
    trail.newLevel();
    reason.clear();
    trail.assign(positive ? literal : negated(literal), BoundTrail::none,
                 reason);
    return true;
  }
  // The earliest activity now; if there are several, the one with the least
  // room.
  uint32_t best = BoundTrail::none;
  for (uint32_t a = 0; a < problem.size(); ++a)
    if (!trail.isFixed(a) &&
        (best == BoundTrail::none || trail.lower(a) < trail.lower(best) ||
         (trail.lower(a) == trail.lower(best) &&
          trail.upper(a) < trail.upper(best))))
      best = a;
  if (best == BoundTrail::none)
    return false;
  trail.newLevel();
  reason.clear();
  trail.assign(trail.atMost(best, trail.lower(best)), BoundTrail::none, reason);
  return true;
}

} // namespace mgpu::planner::exact
