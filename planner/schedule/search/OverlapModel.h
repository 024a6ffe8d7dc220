// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPMODEL_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPMODEL_H

// Frozen model F, under which plans of one mgpu-dag/2 file can be compared: one
// device (a file that is spmd), one kernel at a time, one collective at a time
// in one in-order stream, frozen durations, no contention. A node's out_bytes
// live from its start to the end of its last consumer (to the end of all
// without one), beside the resident bytes.

#include "planner/cost/LatencyEstimator.h"

#include <optional>
#include <span>
#include <vector>

namespace mgpu::planner::search {

/// A DAG as flat arrays; nodes are numbered as in the file, topologically.
class OverlapModel {
public:
  /// Multiplies the collectives' durations by `scaleComm`. Nodes without a
  /// frozen duration get that of `latency`. Refuses a DAG that is not spmd,
  /// and, without `latency`, a node that has no duration.
  static Result<OverlapModel> create(const Dag &dag, double scaleComm = 1,
                                     const LatencyEstimator *latency = nullptr);

  uint32_t size() const { return uint32_t(durations.size()); }
  std::span<const uint32_t> predecessors(uint32_t node) const {
    return {before.data() + beforeBegin[node],
            beforeBegin[node + 1] - beforeBegin[node]};
  }
  std::span<const uint32_t> successors(uint32_t node) const {
    return {after.data() + afterBegin[node],
            afterBegin[node + 1] - afterBegin[node]};
  }

  std::vector<double> durations; ///< microseconds
  std::vector<uint8_t> isCollective;
  std::vector<uint64_t> outBytes;
  uint64_t residentBytes = 0;

private:
  std::vector<uint32_t> before, beforeBegin, after, afterBegin;
};

/// When each node starts; what the model says of it.
struct OverlapSchedule {
  std::vector<double> starts;
  std::vector<uint32_t> order; ///< by start; of equals, as they were started
  double makespan = 0;
};

/// Most bytes live at a time, the resident ones among them. At equal times
/// (to a nanosecond) what ends is freed before what starts is allocated.
uint64_t peakMemory(const OverlapModel &model, const OverlapSchedule &schedule);

/// Precedences, one kernel and one collective at a time. Independent of the
/// schedulers.
Result<void> check(const OverlapModel &model, const OverlapSchedule &schedule);

struct OverlapBounds {
  double kernels = 0;      ///< W: all kernels
  double collectives = 0;  ///< C: all collectives
  double criticalPath = 0; ///< CP
  /// max(W, C, CP, max over collectives c of B(ancestors) + d(c) +
  /// B(descendants)), B of a set being the largest of its kernels, its
  /// collectives and its critical path. Beyond `maxClosureNodes` nodes the
  /// last term is left out: it takes nodes^2 / 8 bytes.
  double makespan = 0;
};
inline constexpr uint32_t maxClosureNodes = 40000;
OverlapBounds makespanBounds(const OverlapModel &model);

/// 1 - (exposed - E) / (C - E) with exposed = makespan - W and E = bound - W;
/// nothing when C <= E.
std::optional<double> hiddenShare(const OverlapBounds &bounds, double makespan);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPMODEL_H
