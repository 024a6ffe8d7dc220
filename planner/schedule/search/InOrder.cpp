// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/InOrder.h"

#include <algorithm>
#include <limits>
#include <set>

namespace mgpu::planner::search {

Schedule inOrderSchedule(const Problem &problem, bool early) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const uint32_t n = problem.size();
  Schedule schedule;
  schedule.starts.assign(n, 0);
  std::vector<uint32_t> missing(n);
  std::set<uint32_t> ready; // collectives that wait for nothing any more
  for (uint32_t i = 0; i < n; ++i) {
    missing[i] = uint32_t(problem.before[i].size());
    if (missing[i] == 0 && isCollective(problem, i))
      ready.insert(i);
  }
  double now = 0, until[2] = {never, never};
  uint32_t running[2] = {0, 0}, kernel = 0, collective = 0, started = 0;
  auto skip = [&](uint32_t &next, uint8_t resource) {
    while (next < n && isCollective(problem, next) != bool(resource))
      ++next;
  };
  auto start = [&](uint32_t node, uint8_t resource) {
    schedule.starts[node] = now;
    ++started;
    running[resource] = node;
    until[resource] = now + problem.durations[node];
    schedule.makespan = std::max(schedule.makespan, until[resource]);
  };
  skip(kernel, 0);
  skip(collective, 1);
  while (started < n || until[0] != never || until[1] != never) {
    if (until[1] == never && !ready.empty()) {
      uint32_t next = *ready.begin();
      bool inPlace = next == collective && kernel > next &&
                     (until[0] == never || running[0] > next);
      if (early || inPlace) {
        ready.erase(ready.begin());
        start(next, 1);
        if (next == collective)
          skip(++collective, 1);
      }
    }
    if (until[0] == never && kernel < n && missing[kernel] == 0) {
      start(kernel, 0);
      skip(++kernel, 0);
    }
    now = std::min(until[0], until[1]);
    for (uint8_t resource : {1, 0})
      if (until[resource] <= now) {
        until[resource] = never;
        for (uint32_t next : problem.after[running[resource]])
          if (--missing[next] == 0 && isCollective(problem, next))
            ready.insert(next);
      }
  }
  return schedule;
}

} // namespace mgpu::planner::search
