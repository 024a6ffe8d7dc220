// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The propagators of ConflictSearch.
#include "planner/schedule/exact/ConflictSearch.h"

#include <algorithm>
#include <bit>

namespace mgpu::planner::exact {

// Each propagator leaves the conflict, if any, in `conflict`: literals that are
// true and cannot all be.

/// Makes `literal` true for the literals in `reason`, all of them true.
bool ConflictSearch::imply(Literal literal) {
  if (literal == BoundTrail::always || trail.isTrue(literal))
    return true;
  if (trail.isFalse(literal)) {
    conflict = reason;
    conflict.push_back(negated(literal));
    return false;
  }
  trail.assign(literal, BoundTrail::none, reason);
  return true;
}

/// As imply(), for a bound that may lie outside the first domain.
bool ConflictSearch::raiseLower(uint32_t x, Time low) {
  if (low <= trail.lower(x))
    return true;
  if (low > trail.upper(x)) {
    conflict = reason;
    pushReason(conflict, trail.atMost(x, low - 1));
    return false;
  }
  return imply(trail.atLeast(x, low));
}

bool ConflictSearch::dropUpper(uint32_t x, Time high) {
  if (high >= trail.upper(x))
    return true;
  if (high < trail.lower(x)) {
    conflict = reason;
    pushReason(conflict, trail.atLeast(x, high + 1));
    return false;
  }
  return imply(trail.atMost(x, high));
}

void ConflictSearch::pushReason(std::vector<Literal> &literals,
                                Literal literal) {
  if (literal != BoundTrail::always)
    literals.push_back(literal);
}

bool ConflictSearch::propagate() {
  for (;;) {
    while (trail.next < trail.size()) {
      BoundTrail::Entry entry = trail.entry(trail.next++);
      uint32_t x = entry.side / 2;
      // The atoms between the old bound and the new one became false.
      if (entry.side & 1) {
        for (Time v = entry.after + 1; v <= entry.before; ++v)
          if (!propagateClauses(trail.atLeast(x, v)))
            return false;
      } else {
        for (Time v = entry.before; v < entry.after; ++v)
          if (!propagateClauses(trail.atMost(x, v)))
            return false;
      }
      if (!propagateBound(x, entry.side & 1))
        return false;
    }
    if (!timetableStale)
      return true;
    timetableStale = false;
    for (uint32_t word = 0; word < words; ++word)
      if (!propagateTimetable(word)) {
        timetableStale = true;
        return false;
      }
    if (trail.next == trail.size())
      return true;
  }
}

bool ConflictSearch::propagateClauses(Literal falsified) {
  std::vector<Watch> &list = watches[falsified];
  size_t kept = 0;
  for (size_t k = 0; k < list.size(); ++k) {
    Watch watch = list[k];
    if (trail.isTrue(watch.other)) {
      list[kept++] = watch;
      continue;
    }
    std::vector<Literal> &literals = clauses[watch.clause].literals;
    if (literals[0] == falsified)
      std::swap(literals[0], literals[1]);
    Literal head = literals[0];
    watch.other = head;
    if (trail.isTrue(head)) {
      list[kept++] = watch;
      continue;
    }
    bool moved = false;
    for (size_t i = 2; i < literals.size() && !moved; ++i)
      if (!trail.isFalse(literals[i])) {
        std::swap(literals[1], literals[i]);
        watches[literals[1]].push_back({watch.clause, head});
        moved = true;
      }
    if (moved)
      continue;
    list[kept++] = watch;
    if (trail.isFalse(head)) {
      conflict.clear();
      for (Literal literal : literals)
        conflict.push_back(negated(literal));
      for (++k; k < list.size(); ++k)
        list[kept++] = list[k];
      list.resize(kept);
      return false;
    }
    trail.assign(head, watch.clause, reason);
  }
  list.resize(kept);
  return true;
}

bool ConflictSearch::propagateBound(uint32_t x, bool upper) {
  if (x < problem.size()) {
    timetableStale = true;
    Time duration = problem.duration(x);
    if (upper) {
      Time latest = trail.upper(x);
      for (uint32_t before : problem.predecessors(x)) {
        reason.clear();
        pushReason(reason, trail.atMost(x, latest));
        if (!dropUpper(before, latest - problem.duration(before)))
          return false;
      }
    } else {
      Time end = trail.lower(x) + duration;
      for (uint32_t next : problem.successors(x)) {
        reason.clear();
        pushReason(reason, trail.atLeast(x, end - duration));
        if (!raiseLower(next, end))
          return false;
      }
    }
  }
  for (uint32_t pair : pairsOf[x])
    if (!propagatePair(pairs[pair]))
      return false;
  return true;
}

bool ConflictSearch::propagatePair(const Pair &pair) {
  if (!trail.isFixed(pair.choice)) {
    // No room for one before the other: it is the other way round.
    auto noRoom = [&](uint32_t before, uint32_t after) {
      Time low = trail.lower(before), high = trail.upper(after);
      Time end = low + problem.duration(before);
      if (end <= high)
        return false;
      reason.clear();
      pushReason(reason, trail.atLeast(before, low));
      pushReason(reason, trail.atMost(after, end - 1));
      return true;
    };
    if (noRoom(pair.first, pair.second) && !imply(trail.atMost(pair.choice, 0)))
      return false;
    if (noRoom(pair.second, pair.first) &&
        !imply(trail.atLeast(pair.choice, 1)))
      return false;
    if (!trail.isFixed(pair.choice))
      return true;
  }
  if (trail.lower(pair.choice) == 1)
    return orderPair(pair.first, pair.second, trail.atLeast(pair.choice, 1));
  return orderPair(pair.second, pair.first, trail.atMost(pair.choice, 0));
}

bool ConflictSearch::orderPair(uint32_t before, uint32_t after,
                               Literal choice) {
  Time duration = problem.duration(before);
  reason.clear();
  reason.push_back(choice);
  pushReason(reason, trail.atLeast(before, trail.lower(before)));
  if (!raiseLower(after, trail.lower(before) + duration))
    return false;
  reason.clear();
  reason.push_back(choice);
  pushReason(reason, trail.atMost(after, trail.upper(after)));
  return dropUpper(before, trail.upper(after) - duration);
}

/// Puts into `reason` why at time t the fields `shortFields` are short: enough
/// activities that must run then, `except` left out, to exceed the capacity of
/// one field together with the needs of `except` if there is one.
void ConflictSearch::explainTimetable(Time t, uint32_t word,
                                      uint64_t shortFields, uint32_t except) {
  uint32_t field = uint32_t(std::countr_zero(shortFields)) / 16;
  auto part = [&](uint64_t value) {
    return int32_t(value >> (16 * field) & 0x7fff);
  };
  int32_t surplus = -part(whole[word]);
  if (except != BoundTrail::none)
    surplus += part(needs[size_t(except) * words + word]);
  running.clear();
  for (uint32_t a = 0; a < problem.size(); ++a) {
    int32_t need = part(needs[size_t(a) * words + word]);
    if (a != except && need > 0 && trail.upper(a) <= t &&
        t < trail.lower(a) + problem.duration(a)) {
      running.push_back(a);
      surplus += need;
    }
  }
  // What the surplus allows is left out, unless its bounds always hold.
  for (uint32_t a : running) {
    Literal low = trail.atLeast(a, t - problem.duration(a) + 1);
    Literal high = trail.atMost(a, t);
    int32_t need = part(needs[size_t(a) * words + word]);
    bool isFree = low == BoundTrail::always && high == BoundTrail::always;
    if (!isFree && surplus > need) {
      surplus -= need;
      continue;
    }
    pushReason(reason, low);
    pushReason(reason, high);
  }
}

bool ConflictSearch::propagateTimetable(uint32_t word) {
  std::fill(table.begin(), table.end(), whole[word]);
  for (uint32_t a = 0; a < problem.size(); ++a) {
    uint64_t need = needs[size_t(a) * words + word];
    Time from = trail.upper(a), to = trail.lower(a) + problem.duration(a);
    if (need == 0)
      continue;
    for (Time t = from; t < to; ++t) {
      table[size_t(t)] -= need;
      if (uint64_t lost = guard & ~table[size_t(t)]) {
        reason.clear();
        explainTimetable(t, word, lost, BoundTrail::none);
        conflict = reason;
        return false;
      }
    }
  }
  for (uint32_t a = 0; a < problem.size(); ++a) {
    if (needs[size_t(a) * words + word] == 0 || problem.duration(a) == 0 ||
        trail.isFixed(a))
      continue;
    // Its part that must run, as it is in the table.
    Time from = trail.upper(a), to = trail.lower(a) + problem.duration(a);
    if (!filterStart(a, word, from, to) || !filterEnd(a, word, from, to))
      return false;
  }
  return true;
}

/// Fields that are short if `a` ran at time t as well; in [from, to) the table
/// has it already.
uint64_t ConflictSearch::fieldsShort(uint32_t a, Time t, uint32_t word,
                                     Time from, Time to) const {
  if (from <= t && t < to)
    return 0;
  return guard & ~(table[size_t(t)] - needs[size_t(a) * words + word]);
}

bool ConflictSearch::filterStart(uint32_t a, uint32_t word, Time from,
                                 Time to) {
  Time duration = problem.duration(a);
  for (Time low = trail.lower(a);;) {
    Time t = low + duration - 1;
    while (t >= low && fieldsShort(a, t, word, from, to) == 0)
      --t;
    if (t < low)
      return true;
    reason.clear();
    pushReason(reason, trail.atLeast(a, t - duration + 1));
    explainTimetable(t, word, fieldsShort(a, t, word, from, to), a);
    if (!raiseLower(a, t + 1))
      return false;
    low = t + 1;
  }
}

bool ConflictSearch::filterEnd(uint32_t a, uint32_t word, Time from, Time to) {
  Time duration = problem.duration(a);
  for (Time high = trail.upper(a);;) {
    Time t = high;
    while (t < high + duration && fieldsShort(a, t, word, from, to) == 0)
      ++t;
    if (t == high + duration)
      return true;
    reason.clear();
    pushReason(reason, trail.atMost(a, t));
    explainTimetable(t, word, fieldsShort(a, t, word, from, to), a);
    if (!dropUpper(a, t - duration))
      return false;
    high = t - duration;
  }
}

} // namespace mgpu::planner::exact
