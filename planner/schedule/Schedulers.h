// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SCHEDULERS_H
#define MGPU_PLANNER_SCHEDULE_SCHEDULERS_H

// One free function per scheduling algorithm, one .cpp each. All return a
// complete plan: lanes, waits, predicted times, arena layout, bound.

#include "planner/cost/LatencyEstimator.h"
#include "planner/plan/Plan.h"
#include "planner/plan/Verify.h"

namespace mgpu::planner {

struct ScheduleOptions {
  PlanLimits limits;
  uint32_t streamsPerDevice = 4; ///< the list scheduler uses at most this many
};

/// Program order, one stream per device, each node after the one before it on
/// all devices. The baseline every other plan is compared with.
Result<Plan> scheduleSerial(const Dag &dag, const LatencyEstimator &latency,
                            const ScheduleOptions &options = {});

/// Priority list scheduling: longest path to the end first; the stream that
/// lets the node start first. Collectives of one communicator keep DAG order.
Result<Plan> scheduleList(const Dag &dag, const LatencyEstimator &latency,
                          const ScheduleOptions &options = {});

/// A random legal plan, for tests: any order and any stream the DAG allows.
Result<Plan> scheduleShuffled(const Dag &dag, const LatencyEstimator &latency,
                              uint64_t seed,
                              const ScheduleOptions &options = {});

/// max(critical path, work per device / streams that can run at once = 1...):
/// no plan under this model ends earlier. Microseconds.
double makespanLowerBound(const Dag &dag, const LatencyEstimator &latency);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_SCHEDULERS_H
