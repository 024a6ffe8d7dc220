// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/BidirectionalPass.h"

#include "planner/schedule/exact/Justification.h"

namespace mgpu::planner::exact {

static Time improvedPass(const Problem &problem, PriorityRule rule,
                         Starts &starts) {
  ScheduleGenerator(problem).parallel(priorityKeys(problem, rule), starts);
  return Justifier(problem).both(starts);
}

Starts listPass(const Problem &problem, PriorityRule rule) {
  Starts fromFront, fromBack;
  Time front = improvedPass(problem, rule, fromFront);
  Time back = improvedPass(problem.reversed(), rule, fromBack);
  if (front <= back)
    return fromFront;
  for (uint32_t a = 0; a < problem.size(); ++a)
    fromBack[a] = back - fromBack[a] - problem.duration(a);
  return fromBack;
}

} // namespace mgpu::planner::exact
