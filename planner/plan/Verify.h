// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_VERIFY_H
#define MGPU_PLANNER_PLAN_VERIFY_H

// Proves a plan safe without trusting, or sharing code with, the scheduler
// that made it.

#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// The limits that a plan keeps to.
struct PlanLimits {
  /// A GPU has 8 hardware queues by default (CUDA_DEVICE_MAX_CONNECTIONS).
  uint32_t streamsPerDevice = 8;
  uint64_t arenaBytes = UINT64_MAX; ///< per device
};

/// Succeeds when: each node has one step with the streams of its devices; every
/// DAG edge is implied by stream order and waits; no two unordered uses of
/// overlapping bytes (of the arena, or of a host buffer) include a write; of
/// two buffers that share bytes the last use of one precedes the first of the
/// other, and what outlives a replay shares none; any two collectives that
/// share a communicator, or two ranks of two of them, are ordered, so all ranks
/// issue them alike; waits point backwards; limits hold.
/// O(edges x streams) time. The error names the nodes.
Result<void> verify(const Plan &plan, const Dag &dag,
                    const PlanLimits &limits = {});

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_VERIFY_H
