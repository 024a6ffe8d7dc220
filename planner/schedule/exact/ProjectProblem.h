// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_PROJECTPROBLEM_H
#define MGPU_PLANNER_SCHEDULE_EXACT_PROJECTPROBLEM_H

// The resource-constrained project scheduling problem, PS | prec | Cmax:
// activities with integer durations and precedences, renewable resources with
// constant capacities, no preemption; the latest end is to be least.
// Terms and notation: Kolisch and Hartmann, "Heuristic algorithms for solving
// the resource-constrained project scheduling problem" (1999).

#include "support/Result.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mgpu::planner::exact {

using Time = int32_t;

/// Start of each activity.
using Starts = std::vector<Time>;

/// A checked instance; made by create() and not changed after.
class Problem {
public:
  /// What create() takes: one duration per activity, demands of activity a at
  /// [a * resources, (a + 1) * resources), precedences (before, after).
  struct Description {
    std::vector<int32_t> capacities;
    std::vector<Time> durations;
    std::vector<int32_t> demands;
    std::vector<std::pair<uint32_t, uint32_t>> precedences;
  };
  /// Profiles are indexed by time, so the durations may sum to this at most.
  static constexpr Time maxHorizon = 1 << 20;

  /// Refuses mismatched sizes, negative numbers, a demand above its capacity, a
  /// cycle, and durations that sum to more than maxHorizon.
  static Result<Problem> create(Description description);

  uint32_t size() const { return uint32_t(description.durations.size()); }
  uint32_t numResources() const {
    return uint32_t(description.capacities.size());
  }
  Time duration(uint32_t activity) const {
    return description.durations[activity];
  }
  int32_t capacity(uint32_t resource) const {
    return description.capacities[resource];
  }
  int32_t demand(uint32_t activity, uint32_t resource) const {
    return description.demands[activity * numResources() + resource];
  }
  std::span<const uint32_t> successors(uint32_t activity) const {
    return {after.data() + afterBegin[activity],
            afterBegin[activity + 1] - afterBegin[activity]};
  }
  std::span<const uint32_t> predecessors(uint32_t activity) const {
    return {before.data() + beforeBegin[activity],
            beforeBegin[activity + 1] - beforeBegin[activity]};
  }
  /// All activities, each after its predecessors, else the least number first.
  const std::vector<uint32_t> &topological() const { return order; }
  /// Sum of durations: some schedule ends by then.
  Time horizon() const { return total; }
  /// The same with every precedence turned round: a schedule of it, mirrored in
  /// time, is one of this problem.
  Problem reversed() const;

  /// Latest end.
  Time makespan(const Starts &starts) const;
  /// Precedences and capacities hold and no start is negative. Written for
  /// clarity, not speed; shares nothing with the schedulers.
  Result<void> check(const Starts &starts) const;

private:
  Problem() = default;

  Description description;
  std::vector<uint32_t> after, afterBegin, before, beforeBegin, order;
  Time total = 0;
};

/// Longest paths, resources left out: heads[a] is the earliest start, tails[a]
/// the least time from the start of `a`'s successors to the end of all.
struct Paths {
  std::vector<Time> heads, tails;
  Time length = 0; ///< critical path
};
Paths longestPaths(const Problem &problem);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_PROJECTPROBLEM_H
