// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_JUSTIFICATION_H
#define MGPU_PLANNER_SCHEDULE_EXACT_JUSTIFICATION_H

#include "planner/schedule/exact/Sgs.h"

namespace mgpu::planner::exact {

/// Double justification, also forward-backward improvement (Li and Willis 1992;
/// Valls, Ballestin and Quintanilla 2005): every activity is moved as late as
/// possible, in the order of decreasing ends, then as early as possible, in the
/// order of increasing starts. The makespan never grows.
class Justifier {
public:
  explicit Justifier(const Problem &problem);
  Justifier(const Justifier &) = delete; // its parts point at each other

  /// Shifts right: `starts`, which must be a schedule, becomes one with the
  /// activities as late as possible and the first of them at 0. Returns the new
  /// makespan.
  Time right(Starts &starts);
  /// Shifts left: the serial scheme in the order of the starts.
  Time left(Starts &starts);
  /// Right, then left.
  Time both(Starts &starts) {
    right(starts);
    return left(starts);
  }

private:
  const Problem *problem;
  Problem mirror;
  ScheduleGenerator forward, backward;
  Starts mirrored;
  std::vector<uint32_t> list;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_JUSTIFICATION_H
