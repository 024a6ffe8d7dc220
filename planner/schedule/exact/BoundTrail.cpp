// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/BoundTrail.h"

#include <algorithm>

namespace mgpu::planner::exact {

uint32_t BoundTrail::addVariable(Time low, Time high) {
  uint32_t x = numVariables();
  first.push_back(low);
  last.push_back(high);
  base.push_back(numAtoms());
  variableOf.resize(variableOf.size() + size_t(high - low), x);
  holds.resize(2 * variableOf.size(), 0);
  bounds.push_back(low);
  bounds.push_back(high);
  latest.push_back(-1);
  latest.push_back(-1);
  return x;
}

/// The atoms between the bound before and the one after change their truth.
void BoundTrail::mark(const Entry &entry, uint8_t value) {
  uint32_t x = entry.side / 2, negation = entry.side & 1;
  auto [low, high] = std::minmax(entry.before, entry.after);
  uint32_t atom = base[x] + uint32_t(low - first[x]);
  for (Time v = low; v < high; ++v, ++atom)
    holds[2 * atom + negation] = value;
}

void BoundTrail::assign(Literal literal, uint32_t clause,
                        const std::vector<Literal> &reason) {
  uint32_t s = side(literal);
  Entry entry;
  entry.side = s;
  entry.before = bounds[s];
  entry.after = value(literal);
  entry.previous = latest[s];
  entry.clause = clause;
  entry.begin = uint32_t(reasons.size());
  if (clause == none && level() > 0)
    reasons.insert(reasons.end(), reason.begin(), reason.end());
  entry.end = uint32_t(reasons.size());
  entry.level = level();
  bounds[s] = entry.after;
  latest[s] = int32_t(entries.size());
  entries.push_back(entry);
  mark(entry, 1);
}

int32_t BoundTrail::entryOf(Literal literal) const {
  uint32_t s = side(literal);
  Time wanted = value(literal);
  int32_t at = latest[s];
  while (at >= 0) {
    const Entry &entry = entries[size_t(at)];
    bool earlier = s & 1 ? entry.before <= wanted : entry.before >= wanted;
    if (!earlier)
      break;
    at = entry.previous;
  }
  return at;
}

void BoundTrail::undo() {
  const Entry &entry = entries.back();
  mark(entry, 0);
  bounds[entry.side] = entry.before;
  latest[entry.side] = entry.previous;
  reasons.resize(entry.begin);
  entries.pop_back();
}

} // namespace mgpu::planner::exact
