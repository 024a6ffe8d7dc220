// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_LANECLOCKS_H
#define MGPU_PLANNER_PLAN_LANECLOCKS_H

// What a plan orders before what: for each step, how many steps of each lane
// are done when it ends (a vector clock). A step is before another exactly when
// lane order and waits say so; predicted times play no part. verify() does not
// use this class: it keeps its own.

#include "planner/plan/Plan.h"

#include <map>
#include <span>

namespace mgpu::planner {

/// Steps are added in plan order: begin(), any joins, end(). Space is
/// steps * lanes words, time O((waits + steps) * lanes).
class LaneClocks {
public:
  using StepIndex = uint32_t;

  /// Room for `numSteps` steps on at most `maxLanes` lanes.
  LaneClocks(size_t numSteps, size_t maxLanes);
  /// The clocks of a plan whose lanes and waits are in range.
  static LaneClocks of(const Plan &plan, const Dag &dag);

  void begin(std::span<const Lane> lanes);
  /// Whether the step begun already follows `earlier`.
  bool follows(StepIndex earlier) const {
    return current()[homeLane[earlier]] >= homeCount[earlier];
  }
  void join(StepIndex earlier);
  void end();

  /// Whether `earlier` is before `later`; false when they are the same.
  bool before(StepIndex earlier, StepIndex later) const {
    return earlier != later &&
           of(later)[homeLane[earlier]] >= homeCount[earlier];
  }
  std::span<const uint32_t> of(StepIndex step) const {
    return {clocks.data() + step * numLanes, numLanes};
  }
  size_t laneCount() const { return numLanes; }
  /// A lane of the step, and the number of that lane's steps up to it.
  uint32_t home(StepIndex step) const { return homeLane[step]; }
  uint32_t count(StepIndex step) const { return homeCount[step]; }

private:
  std::span<const uint32_t> current() const { return of(numDone); }
  uint32_t *row(size_t step) { return clocks.data() + step * numLanes; }

  size_t numLanes;
  StepIndex numDone = 0;
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> homeLane, homeCount;
  std::map<Lane, uint32_t> laneIndex;
  std::vector<int64_t> lastOnLane; ///< step, -1 before the first
  std::vector<uint32_t> lanesOfStep;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_LANECLOCKS_H
