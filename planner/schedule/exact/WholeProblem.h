// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_WHOLEPROBLEM_H
#define MGPU_PLANNER_SCHEDULE_EXACT_WHOLEPROBLEM_H

// Between the planner's problem and that of the solver, which counts in whole
// numbers.

#include "planner/schedule/exact/ProjectProblem.h"
#include "planner/schedule/problem/Schedule.h"

#include <optional>

namespace mgpu::planner {

/// A problem with resources of which nodes take shares, for exact::solve(),
/// where its durations are whole and its shares are parts of one whole number.
/// Nothing of others: where each resource runs one node at a time there are
/// better searches. Memory is left out.
std::optional<exact::Problem> wholeProblem(const Problem &problem);

/// An instance as a problem of the planner; its activities in topological
/// order. A resource's shares are demands by its capacity.
Result<Problem> problemOf(const exact::Problem &instance);

/// What starts in whole numbers are as a schedule.
Schedule scheduleOf(const Problem &problem, const exact::Starts &starts);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_EXACT_WHOLEPROBLEM_H
