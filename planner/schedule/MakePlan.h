// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_MAKEPLAN_H
#define MGPU_PLANNER_SCHEDULE_MAKEPLAN_H

// From a DAG and a scheduler's name to a plan that is proven.

#include "planner/schedule/list/Schedulers.h"

#include <string>

namespace mgpu::planner {

struct PlanRequest : ScheduleOptions {
  std::string scheduler = "list"; ///< or "serial", or "shuffled"
  /// "shuffled" draws the plan by it. The others draw a factor of 1/2 to 2 for
  /// the duration of each node, which changes their order; 0 draws none.
  uint64_t seed = 0;
  /// Only what the scheduler makes, without its bound: to compare programs by.
  bool isDraft = false;
};

/// The plan, which verify() has proven, with its bound. "list" without a seed,
/// with the whole schedule policy and three streams or more, is the shortest
/// plan that searchPlans() finds in a number of moves that depends on the size
/// of the DAG alone; the list scheduler's own stays where none is shorter.
/// `latency` orders it and predicts its times; null stands for the host's
/// roofline.
Result<Plan> makePlan(const Dag &dag, const PlanRequest &request,
                      const LatencyEstimator *latency = nullptr);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_MAKEPLAN_H
