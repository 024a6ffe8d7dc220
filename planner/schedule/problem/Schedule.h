// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_SCHEDULE_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_SCHEDULE_H

#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// When each node of a problem starts, in microseconds.
struct Schedule {
  std::vector<double> starts;
  double makespan = 0; ///< the latest end
};

/// The nodes by start, each after what it needs; of equal starts those that
/// take no time first.
std::vector<uint32_t> startOrder(const Problem &problem,
                                 const Schedule &schedule);

/// Precedences and resources hold, and all lies within [0, makespan]. It shares
/// nothing with the searches. Memory is not its business (peakBytes()).
Result<void> check(const Problem &problem, const Schedule &schedule);

/// The most bytes live at a time, by device, resident ones included. At equal
/// times (to a nanosecond) what ends is freed before what starts is allocated.
std::vector<uint64_t> peakBytes(const Problem &problem,
                                const Schedule &schedule);

/// The peak if the nodes run one at a time in `order`.
std::vector<uint64_t> sequencePeakBytes(const Problem &problem,
                                        const std::vector<uint32_t> &order);

/// Whether each device's bytes are within its limit.
bool fits(const Problem &problem, const std::vector<uint64_t> &bytes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_SCHEDULE_H
