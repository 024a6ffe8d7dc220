// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/Sgs.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace mgpu::planner::exact {

ScheduleGenerator::ScheduleGenerator(const Problem &problem)
    : problem(&problem), profile(problem), rank(problem.size()),
      missing(problem.size()), earliest(problem.size()) {
  for (uint32_t i = 0; i < problem.size(); ++i)
    rank[problem.topological()[i]] = i;
}

Time ScheduleGenerator::serial(const std::vector<uint32_t> &list,
                               Starts &starts) {
  profile.clear();
  std::fill(earliest.begin(), earliest.end(), 0);
  starts.resize(problem->size());
  Time makespan = 0;
  for (uint32_t a : list) {
    Time start = profile.earliest(a, earliest[a]);
    Time end = start + problem->duration(a);
    profile.place(a, start);
    starts[a] = start;
    makespan = std::max(makespan, end);
    for (uint32_t next : problem->successors(a))
      earliest[next] = std::max(earliest[next], end);
  }
  return makespan;
}

Time ScheduleGenerator::parallel(const Keys &keys, Starts &starts) {
  profile.clear();
  starts.resize(problem->size());
  auto first = [&](uint32_t a, uint32_t b) {
    return keys[a] != keys[b] ? keys[a] < keys[b] : rank[a] < rank[b];
  };
  ready.clear();
  for (uint32_t a = 0; a < problem->size(); ++a) {
    missing[a] = uint32_t(problem->predecessors(a).size());
    if (missing[a] == 0)
      ready.push_back(a);
  }
  std::priority_queue<std::pair<Time, uint32_t>,
                      std::vector<std::pair<Time, uint32_t>>, std::greater<>>
      running;
  Time now = 0, makespan = 0;
  for (uint32_t done = 0; done < problem->size();) {
    // What runs started by now, so what fits now fits until it ends.
    std::sort(ready.begin(), ready.end(), first);
    size_t kept = 0;
    for (uint32_t a : ready) {
      if (problem->duration(a) > 0 && !profile.fitsAt(a, now)) {
        ready[kept++] = a;
        continue;
      }
      profile.place(a, now);
      starts[a] = now;
      running.emplace(now + problem->duration(a), a);
      makespan = std::max(makespan, now + problem->duration(a));
      ++done;
    }
    ready.resize(kept);
    if (running.empty())
      continue;
    now = running.top().first;
    for (; !running.empty() && running.top().first == now; running.pop())
      for (uint32_t next : problem->successors(running.top().second))
        if (--missing[next] == 0)
          ready.push_back(next);
  }
  return makespan;
}

void ScheduleGenerator::orderByKeys(const Keys &keys,
                                    std::vector<uint32_t> &list) {
  auto later = [&](uint32_t a, uint32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : rank[a] > rank[b];
  };
  ready.clear();
  list.clear();
  for (uint32_t a = 0; a < problem->size(); ++a) {
    missing[a] = uint32_t(problem->predecessors(a).size());
    if (missing[a] == 0)
      ready.push_back(a);
  }
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    uint32_t a = ready.back();
    ready.pop_back();
    list.push_back(a);
    for (uint32_t next : problem->successors(a))
      if (--missing[next] == 0) {
        ready.push_back(next);
        std::push_heap(ready.begin(), ready.end(), later);
      }
  }
}

void ScheduleGenerator::orderByStarts(const Starts &starts,
                                      std::vector<uint32_t> &list) {
  // Counting sort, stable: equal starts keep the topological order, which
  // activities without duration need.
  Time latest = 0;
  for (Time start : starts)
    latest = std::max(latest, start);
  counts.assign(size_t(latest) + 2, 0);
  for (Time start : starts)
    ++counts[size_t(start) + 1];
  for (size_t t = 1; t < counts.size(); ++t)
    counts[t] += counts[t - 1];
  list.resize(problem->size());
  for (uint32_t a : problem->topological())
    list[counts[size_t(starts[a])]++] = a;
}

} // namespace mgpu::planner::exact
