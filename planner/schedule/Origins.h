// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_ORIGINS_H
#define MGPU_PLANNER_SCHEDULE_ORIGINS_H

// On what the durations of a plan rest, by kind of node.

#include "planner/cost/LatencyEstimator.h"
#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// Writes into the steps what their durations rest on, which are `latency`'s.
void recordOrigins(Plan &plan, const Dag &dag, const LatencyEstimator &latency);

/// The nodes of one kind ("kernel", "matrix product", "copy", "all_reduce").
struct KindOrigins {
  std::string kind;
  std::array<uint32_t, allOrigins.size()> nodes{}; ///< by origin

  /// Times of one kind from several origins: what is longer than what may be
  /// the origins' doing.
  bool isMixed() const;
};
/// By kind, in the order of their first nodes.
std::vector<KindOrigins> originsOf(const Plan &plan, const Dag &dag);

/// A line for each kind: "kernel: 12 measured, 6 assumed: mixed, so ...".
std::vector<std::string> originLines(const Plan &plan, const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_ORIGINS_H
