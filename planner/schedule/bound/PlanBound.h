// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_BOUND_PLANBOUND_H
#define MGPU_PLANNER_SCHEDULE_BOUND_PLANBOUND_H

#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/problem/PhaseProblem.h"

namespace mgpu::planner {

/// The bound of a program's plan, with its proof.
struct PlanBound {
  double us = 0;                             ///< of a replay
  BoundArgument by = BoundArgument::Unknown; ///< of a replay's longest phase
  std::vector<Certificate> certificates;     ///< by phase; checked
  std::vector<std::string> words; ///< by phase of a replay: explainBound()
};
Result<PlanBound> boundOf(std::span<const PhaseProblem> phases);

/// Writes a bound into a plan. Sums in another order may round to just above a
/// makespan that meets the bound, which then is that makespan.
void setBound(Plan &plan, double us, BoundArgument by);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_BOUND_PLANBOUND_H
