// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/PriorityRules.h"

namespace mgpu::planner::exact {

std::string_view toString(PriorityRule rule) {
  switch (rule) {
  case PriorityRule::LatestFinish:
    return "latest finish";
  case PriorityRule::LatestStart:
    return "latest start";
  case PriorityRule::MostTotalSuccessors:
    return "most total successors";
  case PriorityRule::RankPositional:
    return "greatest rank positional weight";
  case PriorityRule::MinimumSlack:
    return "minimum slack";
  }
  return "unknown";
}

/// How many activities follow each, directly or not: one search from each.
static Keys totalSuccessors(const Problem &problem) {
  Keys counts(problem.size(), 0);
  std::vector<uint32_t> seen(problem.size(), UINT32_MAX), stack;
  for (uint32_t root = 0; root < problem.size(); ++root) {
    stack.assign(1, root);
    while (!stack.empty()) {
      uint32_t a = stack.back();
      stack.pop_back();
      for (uint32_t next : problem.successors(a))
        if (seen[next] != root) {
          seen[next] = root;
          counts[root] += 1;
          stack.push_back(next);
        }
    }
  }
  return counts;
}

Keys priorityKeys(const Problem &problem, PriorityRule rule) {
  Paths paths = longestPaths(problem);
  Keys keys(problem.size(), 0);
  if (rule == PriorityRule::MostTotalSuccessors)
    keys = totalSuccessors(problem);
  for (uint32_t a = 0; a < problem.size(); ++a) {
    Time latestStart = paths.length - paths.tails[a] - problem.duration(a);
    switch (rule) {
    case PriorityRule::LatestFinish:
      keys[a] = latestStart + problem.duration(a);
      break;
    case PriorityRule::LatestStart:
      keys[a] = latestStart;
      break;
    case PriorityRule::MostTotalSuccessors:
      keys[a] = -keys[a];
      break;
    case PriorityRule::RankPositional:
      keys[a] = -problem.duration(a);
      for (uint32_t next : problem.successors(a))
        keys[a] -= problem.duration(next);
      break;
    case PriorityRule::MinimumSlack:
      keys[a] = latestStart - paths.heads[a];
      break;
    }
  }
  return keys;
}

} // namespace mgpu::planner::exact
