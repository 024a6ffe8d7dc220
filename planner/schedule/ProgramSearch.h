// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROGRAMSEARCH_H
#define MGPU_PLANNER_SCHEDULE_PROGRAMSEARCH_H

// The portfolio (search/OverlapSearch.h) for programs of any number of devices.

#include "planner/cost/LatencyEstimator.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/exact/Budget.h"

#include <functional>

namespace mgpu::planner {

/// A DAG that is not spmd, under the planning model of list/Schedulers.h.
struct ProgramModel {
  std::vector<double> durations; ///< by node
  std::vector<PhaseProblem> phases;
  PlanBound bound;
};
Result<ProgramModel> modelOf(const Dag &dag, const LatencyEstimator &latency,
                             uint64_t memoryBytes = UINT64_MAX);

/// Called with plans that are shorter than all that were kept, without their
/// bound. Returns the memory that the plan takes as a share of the limit, of
/// the device where that is largest: up to 1 the plan was kept, above it was
/// refused.
using PlanOffer = std::function<Result<double>(Plan)>;

/// Looks for ever shorter plans until the budget ends or the bound is met.
/// `start` is a plan of the same model; where it is `kept` already, only
/// shorter ones are offered. Raises the model's bound to what the exact search
/// proves. At least three streams for each device, so that none shares one.
Result<void> searchPlans(const Dag &dag, ProgramModel &model, const Plan &start,
                         bool kept, const LatencyEstimator &latency,
                         uint32_t streamsPerDevice, uint64_t seed,
                         exact::Budget &budget, const PlanOffer &offer);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROGRAMSEARCH_H
