// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/BaseOrders.h"

#include <algorithm>
#include <set>

namespace mgpu::planner::search {

OverlapSchedule inOrderSchedule(const OverlapModel &model, bool early) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const uint32_t n = model.size();
  OverlapSchedule schedule;
  schedule.starts.assign(n, 0);
  schedule.order.reserve(n);
  std::vector<uint32_t> missing(n);
  std::set<uint32_t> ready; // collectives that wait for nothing any more
  for (uint32_t i = 0; i < n; ++i) {
    missing[i] = uint32_t(model.predecessors(i).size());
    if (missing[i] == 0 && model.isCollective[i])
      ready.insert(i);
  }
  double now = 0, until[2] = {never, never};
  uint32_t running[2] = {0, 0}, kernel = 0, collective = 0;
  auto skip = [&](uint32_t &next, uint8_t resource) {
    while (next < n && model.isCollective[next] != resource)
      ++next;
  };
  auto start = [&](uint32_t node, uint8_t resource) {
    schedule.starts[node] = now;
    schedule.order.push_back(node);
    running[resource] = node;
    until[resource] = now + model.durations[node];
    schedule.makespan = std::max(schedule.makespan, until[resource]);
  };
  skip(kernel, 0);
  skip(collective, 1);
  while (schedule.order.size() < n || until[0] != never || until[1] != never) {
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
        for (uint32_t next : model.successors(running[resource]))
          if (--missing[next] == 0 && model.isCollective[next])
            ready.insert(next);
      }
  }
  return schedule;
}

} // namespace mgpu::planner::search
