// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_BOUND_ONEMACHINE_H
#define MGPU_PLANNER_SCHEDULE_BOUND_ONEMACHINE_H

#include "planner/certificate/Certificate.h"

#include <optional>

namespace mgpu::planner {

/// Work on one machine that cannot begin before `head`, and that `tail`
/// follows.
struct Job {
  double head, work, tail;
};

/// The jobs whose heads are at least `head` and whose tails at least `tail`.
struct JobSet {
  double boundUs = 0, head = 0, tail = 0;
};

/// The set of the largest head + work + tail: what Jackson's preemptive
/// schedule takes (Carlier 1982).
JobSet strongestSet(std::vector<Job> jobs);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_BOUND_ONEMACHINE_H
