// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H
#define MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H

// A resident argument never makes a replay longer: the plan of the program
// without resident arguments, less their copies, is a candidate for its plan.

#include "planner/schedule/MakePlan.h"

#include <functional>

namespace mgpu::planner {

/// The program as it is where none of its arguments is resident: their copies
/// belong to each replay. None where it has no such copies.
std::optional<Dag> withoutResidents(const Dag &dag);

/// Takes the plan that `planOf` makes of withoutResidents(), less the copies of
/// resident arguments, where that is shorter, or is no longer than with them,
/// as it should be, and `made` is.
Result<void>
takeApart(TargetPlan &made, const Dag &dag, const Machine &machine,
          const PlanRequest &request,
          const std::function<Result<TargetPlan>(const Dag &)> &planOf);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H
