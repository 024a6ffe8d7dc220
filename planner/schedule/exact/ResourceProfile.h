// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_RESOURCEPROFILE_H
#define MGPU_PLANNER_SCHEDULE_EXACT_RESOURCEPROFILE_H

#include "planner/schedule/exact/ProjectProblem.h"

namespace mgpu::planner::exact {

/// What is free of each resource at each unit of time. Several resources share
/// a word, each under a guard bit: one subtraction asks for all of them, and a
/// guard bit that is gone says which was short.
class ResourceProfile {
public:
  explicit ResourceProfile(const Problem &problem);

  /// Everything is free again.
  void clear();
  /// Whether `activity` could run at the unit of time `t` alone.
  bool fitsAt(uint32_t activity, Time t) const {
    const uint64_t *need = &needs[size_t(activity) * words];
    const uint64_t *have = &free[size_t(t) * words];
    for (uint32_t w = 0; w < words; ++w)
      if (((have[w] - need[w]) & guard) != guard)
        return false;
    return true;
  }
  /// Earliest start from `t` on; 0 <= t. There is one up to the horizon.
  Time earliest(uint32_t activity, Time t) const;
  /// Takes the activity's resources; it must fit, and end by the horizon.
  void place(uint32_t activity, Time start);
  /// Gives them back.
  void remove(uint32_t activity, Time start);

private:
  const Problem *problem;
  uint32_t words;
  uint64_t guard;
  std::vector<uint64_t> needs; ///< per activity
  std::vector<uint64_t> whole; ///< capacities with their guards
  std::vector<uint64_t> free;  ///< per unit of time
  Time top = 0;                ///< nothing was placed from here on
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_RESOURCEPROFILE_H
