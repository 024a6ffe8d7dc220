// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conflict analysis, the clauses it learns, and the activities that guide
// branching.
#include "planner/schedule/exact/ConflictSearch.h"

#include <algorithm>

namespace mgpu::planner::exact {

static constexpr double activityDecay = 0.95;

/// Literals, all true, that imply what the entry did.
void ConflictSearch::reasonOf(uint32_t at,
                              std::vector<Literal> &literals) const {
  const BoundTrail::Entry &entry = trail.entry(at);
  literals.clear();
  if (entry.clause != BoundTrail::none) {
    for (Literal literal : clauses[entry.clause].literals)
      if (trail.side(literal) != entry.side ||
          trail.value(literal) != entry.after)
        literals.push_back(negated(literal));
    return;
  }
  for (uint32_t k = entry.begin; k < entry.end; ++k)
    literals.push_back(trail.reasonAt(k));
}

/// Adds a true literal to those the conflict rests on. Literals of one side
/// only keep the strictest: it implies the others.
void ConflictSearch::addNeed(Literal literal) {
  int32_t entry = trail.entryOf(literal);
  if (entry < 0 || trail.entry(uint32_t(entry)).level == 0)
    return;
  bump(literal);
  uint32_t side = trail.side(literal);
  int32_t &known = needEntry[side];
  Time value = trail.value(literal);
  int32_t begin = int32_t(trail.levelBegin());
  if (known < 0) {
    needSides.push_back(side);
    needValue[side] = value;
    currentNeeds += entry >= begin;
    known = entry;
    return;
  }
  needValue[side] = side & 1 ? std::min(needValue[side], value)
                             : std::max(needValue[side], value);
  currentNeeds += known < begin && entry >= begin;
  known = std::max(known, entry);
}

/// Whether the other needs, or what always holds, imply the need of `side`.
/// They must come earlier, so that two needs never stand for each other.
bool ConflictSearch::isRedundant(uint32_t side) {
  uint32_t entry = uint32_t(needEntry[side]);
  if (trail.entry(entry).clause == BoundTrail::none &&
      trail.entry(entry).begin == trail.entry(entry).end)
    return false; // a decision
  reasonOf(entry, redundant);
  for (Literal literal : redundant) {
    int32_t at = trail.entryOf(literal);
    if (at < 0 || trail.entry(uint32_t(at)).level == 0)
      continue;
    uint32_t other = trail.side(literal);
    Time value = trail.value(literal);
    if (other == side || needEntry[other] < 0 ||
        needEntry[other] >= int32_t(entry) ||
        (other & 1 ? needValue[other] > value : needValue[other] < value))
      return false;
  }
  return true;
}

/// Learns from `conflict` and goes back to where the learnt clause says
/// something new. False: the conflict holds at level 0.
bool ConflictSearch::learn() {
  // A conflict may lie in earlier levels alone: level 0 ones do.
  uint32_t highest = 0;
  for (Literal literal : conflict) {
    int32_t at = trail.entryOf(literal);
    if (at >= 0)
      highest = std::max(highest, trail.entry(uint32_t(at)).level);
  }
  if (highest == 0)
    return false;
  backtrack(highest);
  needSides.clear();
  currentNeeds = 0;
  for (Literal literal : conflict)
    addNeed(literal);
  uint32_t at = trail.size();
  std::vector<Literal> why;
  for (;;) {
    do
      --at;
    while (needEntry[trail.entry(at).side] != int32_t(at));
    if (currentNeeds == 1)
      break;
    needEntry[trail.entry(at).side] = -1;
    --currentNeeds;
    reasonOf(at, why);
    for (Literal literal : why)
      addNeed(literal);
  }
  // The one literal of this level, then the others; each may be listed twice.
  uint32_t pivot = trail.entry(at).side;
  Clause learnt;
  learnt.literals.push_back(negated(trail.literal(pivot, needValue[pivot])));
  std::sort(needSides.begin(), needSides.end());
  needSides.erase(std::unique(needSides.begin(), needSides.end()),
                  needSides.end());
  std::vector<uint32_t> levels;
  uint32_t back = 0;
  for (uint32_t side : needSides) {
    if (side == pivot || needEntry[side] < 0 || isRedundant(side))
      continue;
    uint32_t level = trail.entry(uint32_t(needEntry[side])).level;
    learnt.literals.push_back(negated(trail.literal(side, needValue[side])));
    levels.push_back(level);
    if (level > back) {
      back = level;
      std::swap(learnt.literals[1], learnt.literals.back());
    }
  }
  for (uint32_t side : needSides)
    needEntry[side] = -1;
  std::sort(levels.begin(), levels.end());
  learnt.glue =
      uint32_t(std::unique(levels.begin(), levels.end()) - levels.begin()) + 1;
  activityStep /= activityDecay;

  backtrack(back);
  Literal asserted = learnt.literals[0];
  if (learnt.literals.size() == 1) {
    reason.clear();
    trail.assign(asserted, BoundTrail::none, reason);
    return true;
  }
  clauses.push_back(std::move(learnt));
  attach(uint32_t(clauses.size() - 1));
  trail.assign(asserted, uint32_t(clauses.size() - 1), reason);
  return true;
}

void ConflictSearch::attach(uint32_t clause) {
  const std::vector<Literal> &literals = clauses[clause].literals;
  watches[literals[0]].push_back({clause, literals[1]});
  watches[literals[1]].push_back({clause, literals[0]});
}

/// At level 0, where no clause is a reason anyone asks for: drops the half of
/// the clauses that join most levels, the older of equals.
void ConflictSearch::reduceClauses() {
  std::vector<uint32_t> order(clauses.size());
  for (uint32_t k = 0; k < order.size(); ++k)
    order[k] = k;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return clauses[a].glue != clauses[b].glue
               ? clauses[a].glue < clauses[b].glue
               : a > b;
  });
  std::vector<Clause> kept;
  for (uint32_t k = 0; k < order.size(); ++k) {
    Clause &clause = clauses[order[k]];
    if (k >= order.size() / 2 && clause.glue > 2)
      break;
    // What level 0 satisfies is of no more use. A watched literal must not be
    // false for good, so those false go.
    bool satisfied = false;
    size_t open = 0;
    for (Literal literal : clause.literals) {
      satisfied = satisfied || trail.isTrue(literal);
      if (!trail.isFalse(literal))
        clause.literals[open++] = literal;
    }
    if (satisfied || open < 2)
      continue;
    clause.literals.resize(open);
    kept.push_back(std::move(clause));
  }
  clauses = std::move(kept);
  clauseLimit += clauseLimit / 10;
  for (std::vector<Watch> &list : watches)
    list.clear();
  for (uint32_t k = 0; k < clauses.size(); ++k)
    attach(k);
}

void ConflictSearch::bump(Literal literal) {
  uint32_t atom = literal / 2;
  activity[atom] += activityStep;
  if (activity[atom] > 1e100) {
    for (double &value : activity)
      value *= 1e-100;
    activityStep *= 1e-100;
  }
  wasBumped[atom] = 1;
  if (heapPlace[atom] < 0) {
    heapPlace[atom] = int32_t(heap.size());
    heap.push_back(atom);
  }
  heapUp(size_t(heapPlace[atom]));
}

/// Atoms of `x` in (low, high] are open again.
void ConflictSearch::restoreHeap(uint32_t x, Time low, Time high) {
  for (Time v = low + 1; v <= high; ++v) {
    Literal literal = trail.atLeast(x, v);
    if (literal == BoundTrail::always)
      continue;
    uint32_t atom = literal / 2;
    if (!wasBumped[atom] || heapPlace[atom] >= 0)
      continue;
    heapPlace[atom] = int32_t(heap.size());
    heap.push_back(atom);
    heapUp(heap.size() - 1);
  }
}

uint32_t ConflictSearch::popHeap() {
  uint32_t top = heap.front();
  heapPlace[top] = -1;
  uint32_t last = heap.back();
  heap.pop_back();
  if (!heap.empty()) {
    heap.front() = last;
    heapPlace[last] = 0;
    heapDown(0);
  }
  return top;
}

void ConflictSearch::heapUp(size_t at) {
  uint32_t atom = heap[at];
  for (; at > 0 && activity[heap[(at - 1) / 2]] < activity[atom];
       at = (at - 1) / 2) {
    heap[at] = heap[(at - 1) / 2];
    heapPlace[heap[at]] = int32_t(at);
  }
  heap[at] = atom;
  heapPlace[atom] = int32_t(at);
}

void ConflictSearch::heapDown(size_t at) {
  uint32_t atom = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap.size())
      break;
    if (child + 1 < heap.size() &&
        activity[heap[child + 1]] > activity[heap[child]])
      ++child;
    if (activity[heap[child]] <= activity[atom])
      break;
    heap[at] = heap[child];
    heapPlace[heap[at]] = int32_t(at);
    at = child;
  }
  heap[at] = atom;
  heapPlace[atom] = int32_t(at);
}

} // namespace mgpu::planner::exact
