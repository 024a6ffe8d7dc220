// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_BIDIRECTIONALPASS_H
#define MGPU_PLANNER_SCHEDULE_EXACT_BIDIRECTIONALPASS_H

#include "planner/schedule/exact/PriorityRules.h"

namespace mgpu::planner::exact {

/// The plan without a search: one list pass by `rule` and the parallel scheme,
/// from the front and, in mirrored time, from the back (Klein, "Bidirectional
/// planning", 2000); each is improved by one double justification and the
/// better is kept.
Starts listPass(const Problem &problem,
                PriorityRule rule = PriorityRule::LatestFinish);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_BIDIRECTIONALPASS_H
