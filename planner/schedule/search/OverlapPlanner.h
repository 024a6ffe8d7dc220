// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H

#include "planner/certificate/Certificate.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/problem/Schedule.h"

// From a DAG that is spmd and a limit of memory to a verified plan: what
// `mgpu-tune plan --target sim:NAME` and `bench-schedule --dag` call.

namespace mgpu::planner::search {

/// Plan::model of what is planned by frozen durations alone.
inline constexpr std::string_view frozenModelName = "frozen model F";

struct OverlapOutcome {
  Plan plan; ///< with bound and model line; if no draft, arena and verified
  Problem problem;
  Schedule schedule;
  Certificate certificate; ///< proves the bound; checked
  uint64_t peakBytes = 0;  ///< by the model, resident bytes included
  double firstSeconds = 0; ///< until the first verified plan
};

/// Whether verify() has proven the plan. A draft's arena just fits, or there is
/// none where it surely does; others are as small as can be.
enum class Proof : uint8_t { Verified, Draft };

/// Searches until `budget` ends or the bound is met. Without
/// SchedulePolicy::order there is one schedule, inOrderSchedule(); `join` is
/// nothing to the model, which has no contention. The bound is of the problem
/// without the places that collectives keep where they may not be early.
/// Invalid when nothing is found that fits the memory: the error says so
/// plainly, or, with a proof by a minimum cut, names the step, what is live
/// there and how much is missing. A draft is not verified yet: its caller does
/// that for the one it takes.
Result<OverlapOutcome> planOverlap(const Dag &dag, const FrozenOptions &options,
                                   uint64_t seed, exact::Budget &budget,
                                   SchedulePolicy schedulePolicy = {},
                                   Proof proof = Proof::Verified);

/// Schedules a frozen problem with its kernels in program order, whatever
/// memory that takes. With `early`, collectives start as soon as what they need
/// has ended, the first in the program before others. Else they too are in
/// program order, each once all kernels before it have ended.
Schedule inOrderSchedule(const Problem &problem, bool early);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPPLANNER_H
