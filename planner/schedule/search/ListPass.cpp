// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/ListPass.h"

#include "planner/schedule/search/ShareLevels.h"

#include <algorithm>
#include <queue>

namespace mgpu::planner::search {

namespace {

class ResourceLists {
public:
  ResourceLists(const Problem &problem, Direction direction,
                const std::vector<double> &priorities,
                std::vector<double> &starts)
      : problem(problem), direction(direction), priorities(priorities),
        starts(starts), missing(problem.size()), ready(problem.numResources()),
        taken(problem.numResources()) {}

  double run() {
    starts.assign(problem.size(), 0);
    for (uint32_t i = 0; i < problem.size(); ++i) {
      missing[i] = problem.needs(i, direction).size();
      if (missing[i] == 0)
        release(i);
    }
    startReady();
    while (!running.empty()) {
      now = running.top().first;
      while (!running.empty() && running.top().first <= now) {
        uint32_t node = running.top().second;
        running.pop();
        finish(node);
      }
      startReady();
    }
    return now;
  }

private:
  void release(uint32_t node) {
    std::span<const ResourceUse> uses = problem.uses[node];
    if (uses.empty())
      start(node);
    else
      ready[uses.front().resource].push({priorities[node], ~node});
  }
  void start(uint32_t node) {
    starts[node] = now;
    for (const ResourceUse &use : problem.uses[node])
      taken[use.resource] += use.share;
    running.push({now + problem.durations[node], node});
  }
  void finish(uint32_t node) {
    // From 1 less 1 nothing is left, of other shares some rounding.
    for (const ResourceUse &use : problem.uses[node])
      taken[use.resource] -= use.share;
    for (uint32_t next : problem.needs(node, opposite(direction)))
      if (--missing[next] == 0)
        release(next);
  }
  bool isIdle(uint32_t node) const {
    for (const ResourceUse &use : problem.uses[node])
      if (taken[use.resource] + use.share > 1 + shareRounding)
        return false;
    return true;
  }
  void startReady() {
    std::vector<std::pair<double, uint32_t>> blocked;
    for (size_t r = 0; r < ready.size(); ++r) {
      while (taken[r] < 1 - shareRounding && !ready[r].empty()) {
        auto first = ready[r].top();
        ready[r].pop();
        if (isIdle(~first.second))
          start(~first.second);
        else
          blocked.push_back(first);
      }
      for (auto &each : blocked)
        ready[r].push(each);
      blocked.clear();
    }
  }

  const Problem &problem;
  const Direction direction;
  const std::vector<double> &priorities;
  std::vector<double> &starts;
  std::vector<size_t> missing; ///< what it needs that has not ended
  /// By the first resource; of equal priority the lesser node first.
  std::vector<std::priority_queue<std::pair<double, uint32_t>>> ready;
  std::vector<double> taken; ///< by resource: the shares of what runs
  std::priority_queue<std::pair<double, uint32_t>,
                      std::vector<std::pair<double, uint32_t>>, std::greater<>>
      running; ///< by end
  double now = 0;
};

} // namespace

double listPass(const Problem &problem, Direction direction,
                const std::vector<double> &priorities,
                std::vector<double> &starts) {
  return ResourceLists(problem, direction, priorities, starts).run();
}

} // namespace mgpu::planner::search
