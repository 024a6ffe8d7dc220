// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SIMULATE_H
#define MGPU_PLANNER_SCHEDULE_SIMULATE_H

// Plays a plan event by event: steps start as soon as streams, waits, resources
// and phases allow, and slow each other down while they run side by side.

#include "planner/cost/Contention.h"
#include "planner/plan/Plan.h"

namespace mgpu::planner {

struct Simulation {
  std::vector<double> startUs, endUs; ///< by step; as PlanStep::startUs
  double makespanUs = 0;              ///< of a replay, as Plan::makespanUs
};

/// Durations alone are those of the plan's steps; resources are taken in plan
/// order, as Schedulers.h says. Without contention the times are the plan's
/// own. The plan must have passed verify(). O(n log n) for a fixed number of
/// classes on a device.
Simulation simulate(const Plan &plan, const Dag &dag,
                    const Contention &contention);

/// Makespans of `samples` plays in which each step's duration is multiplied by
/// an independent lognormal factor of median 1 and standard deviation `sigma`
/// of its logarithm; sorted.
std::vector<double> simulateNoise(const Plan &plan, const Dag &dag,
                                  const Contention &contention, double sigma,
                                  uint32_t samples, uint64_t seed);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_SIMULATE_H
