// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H

#include "planner/schedule/search/SerialDecoder.h"
#include "planner/schedule/search/WindowNoise.h"
#include "planner/schedule/search/WindowRepair.h"

namespace mgpu::planner::search {

/// Ever shorter schedules of one problem; memory is not looked at. It starts
/// from list passes, forward and backward. Then a move puts noise on the order
/// of one window of time, decodes it with insertion and justifies the result
/// (Li and Willis 1992); that stays if it is not longer. One seed, one sequence
/// of moves.
class WindowSearch {
public:
  WindowSearch(const Problem &problem, uint64_t seed);
  WindowSearch(const WindowSearch &) = delete;

  /// List passes, which may be made with several priorities. By node, in
  /// microseconds: what must pass until its end, and from its start on.
  void listPasses(const std::vector<double> &heads,
                  const std::vector<double> &tails);
  /// One step; there is a schedule already.
  void move();
  /// Searches by WindowRepair, for a problem of unit streams.
  void repair(exact::Budget &budget);
  /// A schedule found elsewhere; longer ones are ignored.
  void adopt(const Schedule &schedule) {
    if (schedule.makespan < current.makespan)
      current = schedule;
  }

  const Schedule &best() const { return current; }

private:
  double justify(Direction direction, double makespan);
  void keepIfNotLonger(double makespan);

  const Problem &problem;
  WindowNoise noise;
  WindowRepair repairer;
  SerialDecoder decoder;
  std::vector<double> trial;
  std::vector<uint32_t> order;
  Schedule current;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_WINDOWSEARCH_H
