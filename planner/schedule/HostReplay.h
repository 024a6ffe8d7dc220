// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_HOSTREPLAY_H
#define MGPU_PLANNER_SCHEDULE_HOSTREPLAY_H

// How long the host target takes for a plan: not the planning model's one
// device beside the other, but device/host's threads, which share them.

#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// The time that a node takes beside its own work, as bench-replay measured it
/// for a chain on one thread (docs/benchmarks.md).
inline constexpr double hostNodeUs = 0.00115;

/// Microseconds of one replay on `threads` (at least 1), all trips of a rolled
/// loop, from the durations of the plan's steps: device d's work runs in plan
/// order on thread d mod `threads`, a collective on its first device's, the
/// host's own on thread 0. A thread that needs another's result takes it over
/// some 100 ns after it is there, and so does one that waits for thread 0's
/// word to begin. Every thread has a processor core.
double hostReplayUs(const Plan &plan, const Dag &dag, uint32_t threads);

/// The time of hostReplayUs(), and the plan's error.
struct HostPrediction {
  uint32_t threads = 1;
  double us = 0, error = 0;
  double lowUs() const { return us * (1 - error); }
  double highUs() const { return us * (1 + error); }
  /// "9 us +-20 % a replay here on 2 threads".
  std::string text() const;
};
/// None of a plan whose error is not known, which is not the host's, and
/// without threads.
std::optional<HostPrediction> predictReplay(const Plan &plan, const Dag &dag,
                                            uint32_t threads);
/// The plan's verdict and, where there is one, the prediction: what all
/// commands say of it.
std::string planLine(const Plan &plan, const Dag &dag, uint32_t threads);

/// The threads, up to `most`, on which a replay is predicted to be shortest
/// where each that is handed a result has to be woken for it. Assumed rates are
/// too low rather than too high, so to wake a thread counts more beside them.
uint32_t usefulThreads(const Plan &plan, const Dag &dag, uint32_t most);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_HOSTREPLAY_H
