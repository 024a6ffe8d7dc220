// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_BOUNDTRAIL_H
#define MGPU_PLANNER_SCHEDULE_EXACT_BOUNDTRAIL_H

#include "planner/schedule/exact/ProjectProblem.h"

namespace mgpu::planner::exact {

/// A bound of a variable: atom "variable >= value" times two, plus one for its
/// negation, "variable <= value - 1".
using Literal = uint32_t;
inline Literal negated(Literal literal) { return literal ^ 1; }

/// Integer variables known by their bounds, and the history of those bounds
/// with the reason of each change: the trail of a conflict-driven search.
class BoundTrail {
public:
  static constexpr Literal always = UINT32_MAX; ///< true of every assignment
  static constexpr uint32_t none = UINT32_MAX;

  /// A variable from `low` to `high`; before anything else is asked.
  uint32_t addVariable(Time low, Time high);
  uint32_t numVariables() const { return uint32_t(base.size()); }
  uint32_t numAtoms() const { return uint32_t(variableOf.size()); }

  Time lower(uint32_t x) const { return bounds[2 * x]; }
  Time upper(uint32_t x) const { return bounds[2 * x + 1]; }
  bool isFixed(uint32_t x) const { return lower(x) == upper(x); }

  /// x >= value, x <= value. `always` outside the first domain on the true
  /// side; the false side must not be asked for.
  Literal atLeast(uint32_t x, Time value) const {
    return value <= first[x] ? always
                             : 2 * (base[x] + uint32_t(value - first[x] - 1));
  }
  Literal atMost(uint32_t x, Time value) const {
    return value >= last[x] ? always
                            : 2 * (base[x] + uint32_t(value - first[x])) + 1;
  }
  uint32_t variable(Literal literal) const { return variableOf[literal / 2]; }
  /// The bound's side: 2 * variable, plus one for upper bounds.
  uint32_t side(Literal literal) const {
    return 2 * variable(literal) + (literal & 1);
  }
  /// The value of the bound: of the atom, or one less for its negation.
  Time value(Literal literal) const {
    uint32_t x = variable(literal);
    return first[x] + 1 + Time(literal / 2 - base[x]) - Time(literal & 1);
  }
  Literal literal(uint32_t side, Time value) const {
    return side & 1 ? atMost(side / 2, value) : atLeast(side / 2, value);
  }
  /// Looked up, not worked out: most of a search is spent on this question.
  bool isTrue(Literal literal) const { return holds[literal] != 0; }
  bool isFalse(Literal literal) const { return isTrue(negated(literal)); }

  /// One change of one bound. The reason is a clause, or literals that were all
  /// true: reasons[begin, end).
  struct Entry {
    uint32_t side;
    Time before, after;
    int32_t previous; ///< entry of the same side, -1 the first domain
    uint32_t clause = none;
    uint32_t begin = 0, end = 0;
    uint32_t level = 0;
  };
  /// Makes `literal`, which is neither true nor false, true.
  void assign(Literal literal, uint32_t clause,
              const std::vector<Literal> &reason);
  /// Which entry made a true literal true; -1 if the first domain did.
  int32_t entryOf(Literal literal) const;

  uint32_t size() const { return uint32_t(entries.size()); }
  const Entry &entry(uint32_t k) const { return entries[k]; }
  Literal reasonAt(uint32_t k) const { return reasons[k]; }
  uint32_t level() const { return uint32_t(levels.size()); }
  uint32_t levelBegin() const { return levels.empty() ? 0 : levels.back(); }
  void newLevel() { levels.push_back(size()); }
  /// Undoes the last change.
  void undo();
  void closeLevel() { levels.pop_back(); }

  uint32_t next = 0; ///< first entry not propagated

private:
  void mark(const Entry &entry, uint8_t value);

  std::vector<Time> first, last; ///< the first domain
  std::vector<uint8_t> holds;    ///< by literal
  std::vector<uint32_t> base, variableOf;
  std::vector<Time> bounds;    ///< by side
  std::vector<int32_t> latest; ///< entry by side
  std::vector<Entry> entries;
  std::vector<Literal> reasons;
  std::vector<uint32_t> levels;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_BOUNDTRAIL_H
