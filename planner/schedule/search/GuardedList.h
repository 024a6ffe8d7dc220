// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_GUARDEDLIST_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_GUARDEDLIST_H

// List scheduling of kernels and collectives under a hard limit of memory.

#include "planner/schedule/search/OverlapModel.h"
#include "planner/schedule/search/PeakTree.h"

#include <set>

namespace mgpu::planner::search {

/// Most bytes live when the nodes run one at a time in `order`, the resident
/// ones among them.
uint64_t sequentialPeak(const OverlapModel &model,
                        const std::vector<uint32_t> &order);

/// Runs nodes as their priorities say, as long as a way back is left: `base` is
/// an order that fits the limit when run one at a time, and a node may start
/// only if what is live and its output fit now, and the rest of `base`, run one
/// at a time after all that has started, still fits at every step. So memory
/// never blocks for good, however far the schedule runs ahead of `base`.
///
/// A tree over the places of `base` keeps what would be live at each; starting
/// a node moves its output's beginning forward to now, ending its inputs' last
/// consumers moves their end. O((n + e) log n), and a look at each ready node
/// that memory keeps waiting.
class GuardedList {
public:
  /// If `keepsPlaces`, a collective starts only after all kernels before it in
  /// the program have ended; bases must be the program's order then.
  explicit GuardedList(const OverlapModel &model, bool keepsPlaces = false);
  GuardedList(const GuardedList &) = delete;

  /// `base` is a topological order; at equal urgency the greater `priorities`
  /// goes first. False when `base` itself exceeds `limit` (bytes, resident ones
  /// included).
  bool run(const std::vector<uint32_t> &base,
           const std::vector<double> &priorities, uint64_t limit,
           OverlapSchedule &schedule);

private:
  void prepare(const std::vector<uint32_t> &base);
  bool startOne(uint8_t resource, uint64_t limit, OverlapSchedule &schedule);
  void start(uint32_t node, OverlapSchedule &schedule);
  void finish(uint32_t node);
  void release(uint32_t node);
  void openGate();

  const OverlapModel &model;
  const bool keepsPlaces;
  uint32_t gate = 0; ///< in the program: the first kernel that has not ended
  std::vector<uint32_t> base, place;
  const std::vector<double> *priorities = nullptr;
  std::vector<uint32_t> missing; ///< predecessors not ended
  /// Per node: consumers not ended, the last in `base` at the back.
  std::vector<std::vector<uint32_t>> consumers;
  std::vector<uint32_t> openConsumers;
  std::vector<uint8_t> started, ended;
  std::set<std::pair<double, uint32_t>> ready[2]; ///< by resource
  PeakTree tree;
  uint64_t live = 0;   ///< bytes, resident ones included
  uint32_t cursor = 0; ///< first place of `base` that has not started
  double now = 0;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_GUARDEDLIST_H
