// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_LIFETIMES_H
#define MGPU_PLANNER_PLAN_LIFETIMES_H

// When a plan uses each buffer, and what its order of streams and waits says
// of that.

#include "planner/dag/Rows.h"
#include "planner/plan/StreamClocks.h"

#include <span>
#include <vector>

namespace mgpu::planner {

/// By stream: how many of its steps are before all steps from some place of the
/// plan on.
class Floors {
public:
  Floors(const StreamClocks &clocks, size_t steps);

  /// From a place on that is not behind `step`.
  std::span<const uint32_t> at(size_t step) const {
    return {floors.data() + step / apart * streams, streams};
  }

  static constexpr size_t apart = 64; ///< steps of which one has a floor

private:
  size_t streams;
  std::vector<uint32_t> floors;
};

/// The use that a plan makes of each buffer.
struct Lifetimes {
  StreamClocks clocks;
  Floors floors;
  Rows<uint32_t> stepsOf;      ///< per buffer, ascending; once for each use
  std::vector<bool> exclusive; ///< shares its bytes with no other

  Lifetimes(const Plan &plan, const Dag &dag);
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_LIFETIMES_H
