// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_FROZENPROBLEM_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_FROZENPROBLEM_H

#include "planner/cost/LatencyEstimator.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// The resources of a frozen problem, in its order.
enum class FrozenResource : uint8_t { Kernels, Collectives };

/// A device has eight hardware queues by default, one of which is that of the
/// collectives.
inline constexpr uint32_t mostKernels = 7;

struct FrozenOptions {
  double scaleComm = 1; ///< multiplies the collectives' durations
  /// For nodes without a frozen duration; null: there must be none.
  const LatencyEstimator *latency = nullptr;
  uint64_t memoryBytes = UINT64_MAX; ///< of the device
  /// Collectives keep their order, and come after all kernels before them in
  /// the program (SchedulePolicy::early is off).
  bool keepsPlaces = false;
};

/// Frozen model F, under which plans of one mgpu-dag/2 file can be compared:
/// one device (a file that is spmd), one kernel at a time, or several whose
/// shares of the multiprocessors sum to at most 1 (a share is at least a
/// seventh, see mostKernels), one collective at a time, frozen durations, no
/// contention. A node's out_bytes are a buffer that
/// it and its successors use; without successors it is kept to the end. Refuses
/// a DAG that is not spmd, and a node without a duration.
Result<Problem> frozenProblem(const Dag &dag,
                              const FrozenOptions &options = {});

/// Whether arenas hold at least what the frozen model counts, so that its
/// memory proves something of them: each output is one buffer that no other
/// node writes, and what follows a node reads it.
bool hasOwnOutputs(const Dag &dag);

/// Whether a node of a frozen problem is a collective.
inline bool isCollective(const Problem &problem, uint32_t node) {
  return problem.uses[node].front().resource ==
         uint32_t(FrozenResource::Collectives);
}

/// The sum of the durations of a frozen problem's nodes on one resource, times
/// their shares of it, in microseconds.
double workOf(const Problem &problem, FrozenResource resource);

/// The share of the collectives' time that hides behind kernels, out of what
/// can hide: 1 - (exposed - E) / (C - E). C is the sum of the collectives, W
/// that of the kernels, exposed = makespan - W, and E = bound - W is what no
/// schedule can hide. Nothing where C <= E.
std::optional<double> hiddenShare(const Problem &problem, double boundUs,
                                  double makespan);

/// Schedules a frozen problem with its kernels in program order, whatever
/// memory that takes. With `early`, collectives start as soon as what they need
/// has ended, the first in the program before others. Else they too are in
/// program order, each once all kernels before it have ended.
Schedule inOrderSchedule(const Problem &problem, bool early);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_FROZENPROBLEM_H
