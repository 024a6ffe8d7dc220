// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYSEARCH_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYSEARCH_H

#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/search/SequenceDecoder.h"
#include "planner/schedule/search/SerialDecoder.h"
#include "planner/schedule/search/WindowNoise.h"

#include <functional>

namespace mgpu::planner::search {

/// Ever shorter schedules within the memory of the devices. A move puts noise
/// on the order of one window of time, forward, or backward where the nodes
/// then run as late as they can; SequenceDecoder makes a schedule of that,
/// which stays if it is not longer. One seed, one sequence of moves.
class MemorySearch {
public:
  /// Gets every schedule that a move makes, kept or not, and its peaks by
  /// device.
  using Visit =
      std::function<void(const Schedule &, const std::vector<uint64_t> &)>;

  MemorySearch(const Problem &problem, uint64_t seed, Visit visit = nullptr);
  MemorySearch(const MemorySearch &) = delete;

  /// Lowers the peak of a sequence until it fits `limits` (bytes by device,
  /// resident ones included), and takes it as its schedule. False where none
  /// was found that fits; best() is as before then. `sequence` is the lowest
  /// found.
  bool start(std::vector<uint32_t> &sequence,
             const std::vector<uint64_t> &limits, const exact::Budget &budget);
  void move();

  /// A schedule within the limits that was found elsewhere; longer ones are
  /// ignored.
  void adopt(const Schedule &schedule) {
    if (schedule.makespan < current.makespan)
      current = schedule;
  }

  const Schedule &best() const { return current; }

private:
  const Problem &problem;
  const uint64_t seed;
  Visit visit;
  WindowNoise noise;
  SequenceDecoder decoder;
  SerialDecoder serial;
  std::vector<uint64_t> limits;
  std::vector<uint32_t> order;
  Schedule trial, current;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYSEARCH_H
