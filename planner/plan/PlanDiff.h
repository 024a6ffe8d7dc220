// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_PLANDIFF_H
#define MGPU_PLANNER_PLAN_PLANDIFF_H

// Two plans side by side: what moved, and what it bought.

#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// A plan without its program: the names in its text, as a DAG of nodes that do
/// nothing. Enough to look at, not to verify or run.
struct PlanAlone {
  Plan plan;
  Dag dag;
};
/// Errors name the line.
Result<PlanAlone> parsePlanAlone(std::string_view text);

/// One step that both plans have; times are b less a, microseconds.
struct StepChange {
  std::string name;
  double startUs = 0, durationUs = 0;
  bool hasOtherStreams = false;
  double aStartUs = 0, bStartUs = 0;
};
struct PlanDiff {
  double aMakespanUs = 0, bMakespanUs = 0;
  double aLowerBoundUs = 0, bLowerBoundUs = 0;
  double aError = 0, bError = 0; ///< the shares by which times may be wrong
  double aLoadUs = 0, bLoadUs = 0, aFetchUs = 0, bFetchUs = 0;
  uint64_t aArenaBytes = 0, bArenaBytes = 0; ///< the largest of a device
  uint64_t aWaits = 0, bWaits = 0;
  std::vector<std::string> onlyInA, onlyInB; ///< names of steps
  std::vector<StepChange> changes; ///< other streams, duration or place in
                                   ///< order; the largest change of start first
  uint32_t same = 0;               ///< steps with none of that
};
/// Steps are paired by name, those of one name in node order. A step whose
/// order on its stream is the same does not count as moved, whatever its time.
PlanDiff diffPlans(const PlanAlone &a, const PlanAlone &b);

/// In words; at most `most` steps of each list.
std::string toText(const PlanDiff &diff, size_t most = 20);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_PLANDIFF_H
