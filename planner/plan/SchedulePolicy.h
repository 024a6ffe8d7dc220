// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_SCHEDULEPOLICY_H
#define MGPU_PLANNER_PLAN_SCHEDULEPOLICY_H

namespace mgpu::planner {

/// The liberties of a schedule that the program does not state. Each is a
/// transform with a switch and a gain of its own (transform/Transform.h).
struct SchedulePolicy {
  /// Nodes are created in an order that is chosen; else in the program's.
  bool order = true;
  /// A collective starts as early as its inputs allow; else only after all that
  /// stands before it in the program on its devices.
  bool early = true;
  /// Work that would slow down when overlapped is serialised; else the schedule
  /// forks wherever the program lets it.
  bool join = true;
  bool operator==(const SchedulePolicy &) const = default;
};
inline constexpr SchedulePolicy strictPolicy{false, false, false};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_SCHEDULEPOLICY_H
