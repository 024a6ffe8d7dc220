// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_PRIORITYRULES_H
#define MGPU_PLANNER_SCHEDULE_EXACT_PRIORITYRULES_H

#include "planner/schedule/exact/Sgs.h"

#include <string_view>

namespace mgpu::planner::exact {

/// Kolisch, "Efficient priority rules for the resource-constrained project
/// scheduling problem" (1996), where they are compared.
enum class PriorityRule : uint8_t {
  LatestFinish,        ///< LFT: least latest finish by the critical path
  LatestStart,         ///< LST: least latest start
  MostTotalSuccessors, ///< MTS: most activities after it, direct or not
  RankPositional,      ///< GRPW: longest sum of itself and direct successors
  MinimumSlack,        ///< MSLK: least latest start minus earliest start
};
inline constexpr PriorityRule allPriorityRules[] = {
    PriorityRule::LatestFinish, PriorityRule::LatestStart,
    PriorityRule::MostTotalSuccessors, PriorityRule::RankPositional,
    PriorityRule::MinimumSlack};
std::string_view toString(PriorityRule rule);

/// The rule as keys, the least first.
Keys priorityKeys(const Problem &problem, PriorityRule rule);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_PRIORITYRULES_H
