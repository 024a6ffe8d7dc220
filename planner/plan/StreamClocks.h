// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_STREAMCLOCKS_H
#define MGPU_PLANNER_PLAN_STREAMCLOCKS_H

// The order that a plan imposes: for each step, how many steps of each stream
// are done when it ends (a vector clock). A step is before another exactly when
// stream order and waits say so; predicted times play no part. verify() does
// not use this class: it keeps its own.

#include "planner/plan/Plan.h"

#include <map>
#include <span>

namespace mgpu::planner {

/// Steps are added in plan order: begin(), any joins, end(). Space is
/// steps * streams words, time O((waits + steps) * streams).
class StreamClocks {
public:
  using StepIndex = uint32_t;

  /// Room for `numSteps` steps on at most `maxStreams` streams.
  StreamClocks(size_t numSteps, size_t maxStreams);
  /// The clocks of a plan whose streams and waits are in range.
  static StreamClocks of(const Plan &plan, const Dag &dag);

  void begin(std::span<const PlanStream> streams);
  /// Whether the step begun already follows `earlier`.
  bool follows(StepIndex earlier) const {
    return current()[homeStream[earlier]] >= homeCount[earlier];
  }
  void join(StepIndex earlier);
  void end();

  /// Whether `earlier` is before `later`; false when they are the same.
  bool before(StepIndex earlier, StepIndex later) const {
    return earlier != later &&
           of(later)[homeStream[earlier]] >= homeCount[earlier];
  }
  std::span<const uint32_t> of(StepIndex step) const {
    return {clocks.data() + step * numStreams, numStreams};
  }
  size_t streamCount() const { return numStreams; }
  /// A stream of the step, and the number of that stream's steps up to it.
  uint32_t home(StepIndex step) const { return homeStream[step]; }
  uint32_t count(StepIndex step) const { return homeCount[step]; }

private:
  std::span<const uint32_t> current() const { return of(numDone); }
  uint32_t *row(size_t step) { return clocks.data() + step * numStreams; }

  size_t numStreams;
  StepIndex numDone = 0;
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> homeStream, homeCount;
  std::map<PlanStream, uint32_t> streamIndex;
  std::vector<int64_t> lastOnStream; ///< step, -1 before the first
  std::vector<uint32_t> streamsOfStep;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_STREAMCLOCKS_H
