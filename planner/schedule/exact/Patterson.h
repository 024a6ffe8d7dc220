// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_PATTERSON_H
#define MGPU_PLANNER_SCHEDULE_EXACT_PATTERSON_H

// The two text formats of the PSPLIB library (Kolisch and Sprecher 1996).

#include "planner/schedule/exact/ProjectProblem.h"

#include <map>
#include <string_view>

namespace mgpu::planner::exact {

/// Reads an instance in Patterson's format: "activities resources", the
/// capacities, then per activity its duration, one demand per resource, the
/// number of successors and the successors, counted from 1. White space alone
/// separates. `source` names the text in errors.
Result<Problem> parsePatterson(std::string_view text, std::string_view source);

/// Reads a PSPLIB solution list: the lines that begin with three whole numbers,
/// parameter, instance and makespan. Other lines are words; a pair given twice,
/// or a list without any, is an error.
using SolutionList = std::map<std::pair<uint32_t, uint32_t>, Time>;
Result<SolutionList> parseSolutionList(std::string_view text,
                                       std::string_view source);

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_PATTERSON_H
