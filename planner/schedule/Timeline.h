// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TIMELINE_H
#define MGPU_PLANNER_SCHEDULE_TIMELINE_H

// A plan made visible: trace, graph, explanation. All times are predictions of
// the plan's model. The plans given must have passed verify().

#include "planner/schedule/Schedulers.h"

namespace mgpu::planner {

/// Chrome trace events, as Perfetto and chrome://tracing read them: one
/// process per device (the host after the last), one thread per stream.
std::string toChromeTrace(const Plan &plan, const Dag &dag);

/// Graphviz: one cluster per lane in its order, waits as edges between.
std::string toDot(const Plan &plan, const Dag &dag);

struct DeviceTimes {
  double kernelUs = 0;     ///< a kernel runs
  double collectiveUs = 0; ///< a collective runs
  double copyUs = 0;       ///< a copy runs
  double exposedUs = 0;    ///< a collective or copy runs and no kernel does
};

struct PlanSummary {
  double makespanUs = 0;
  double lowerBoundUs = 0;
  double ratio = 1;            ///< makespan over bound; 1 for an empty plan
  double serialMakespanUs = 0; ///< the sum of all durations
  std::vector<DeviceTimes> devices;
  uint64_t waits = 0;       ///< cross-lane waits
  uint64_t bufferBytes = 0; ///< sum of device buffers; arenas may be smaller
  uint64_t arenaBytes = 0;
};
PlanSummary summarize(const Plan &plan, const Dag &dag);

/// One line per step (where, when, how long, and what it waited for), then the
/// summary in words.
std::string explain(const Plan &plan, const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TIMELINE_H
