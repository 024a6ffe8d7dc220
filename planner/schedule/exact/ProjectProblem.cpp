// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/ProjectProblem.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <queue>

namespace mgpu::planner::exact {

static tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorKind::Invalid, std::move(message));
}

/// Lists `to` of each `from`, ascending and each once.
static void makeLists(uint32_t n,
                      std::vector<std::pair<uint32_t, uint32_t>> edges,
                      std::vector<uint32_t> &targets,
                      std::vector<uint32_t> &begin) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  begin.assign(n + 1, 0);
  targets.clear();
  for (auto [from, to] : edges) {
    ++begin[from + 1];
    targets.push_back(to);
  }
  for (uint32_t i = 0; i < n; ++i)
    begin[i + 1] += begin[i];
}

Result<Problem> Problem::create(Description description) {
  uint64_t n = description.durations.size();
  uint64_t resources = description.capacities.size();
  if (n > UINT32_MAX / 2 || description.demands.size() != n * resources)
    return bad(fmt::format("{} demands do not fit {} activities and {} "
                           "resources; give one per pair",
                           description.demands.size(), n, resources));
  for (uint64_t r = 0; r < resources; ++r)
    if (description.capacities[r] < 0)
      return bad(fmt::format("resource {} has the negative capacity {}", r,
                             description.capacities[r]));
  int64_t total = 0;
  for (uint64_t a = 0; a < n; ++a) {
    if (description.durations[a] < 0)
      return bad(fmt::format("activity {} has the negative duration {}", a,
                             description.durations[a]));
    total += description.durations[a];
    for (uint64_t r = 0; r < resources; ++r) {
      int32_t demand = description.demands[a * resources + r];
      if (demand < 0 || demand > description.capacities[r])
        return bad(fmt::format("activity {} needs {} of resource {}, which has "
                               "{}",
                               a, demand, r, description.capacities[r]));
    }
  }
  if (total > maxHorizon)
    return bad(fmt::format("the durations sum to {}, more than {}; use a "
                           "coarser unit of time",
                           total, maxHorizon));

  Problem problem;
  std::vector<std::pair<uint32_t, uint32_t>> turned;
  for (auto [from, to] : description.precedences) {
    if (from >= n || to >= n)
      return bad(fmt::format("precedence {} -> {} names an activity beyond {}",
                             from, to, n));
    turned.emplace_back(to, from);
  }
  makeLists(uint32_t(n), description.precedences, problem.after,
            problem.afterBegin);
  makeLists(uint32_t(n), turned, problem.before, problem.beforeBegin);
  problem.description = std::move(description);
  problem.total = Time(total);

  std::vector<uint32_t> missing(n);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t a = 0; a < n; ++a) {
    missing[a] = uint32_t(problem.predecessors(a).size());
    if (missing[a] == 0)
      ready.push(a);
  }
  while (!ready.empty()) {
    uint32_t a = ready.top();
    ready.pop();
    problem.order.push_back(a);
    for (uint32_t next : problem.successors(a))
      if (--missing[next] == 0)
        ready.push(next);
  }
  if (problem.order.size() != n)
    return bad(fmt::format("the precedences have a cycle: {} of {} activities "
                           "can never start",
                           n - problem.order.size(), n));
  return problem;
}

Problem Problem::reversed() const {
  Problem turned = *this;
  for (auto &[from, to] : turned.description.precedences)
    std::swap(from, to);
  std::swap(turned.after, turned.before);
  std::swap(turned.afterBegin, turned.beforeBegin);
  std::reverse(turned.order.begin(), turned.order.end());
  return turned;
}

Time Problem::makespan(const Starts &starts) const {
  Time latest = 0;
  for (uint32_t a = 0; a < size(); ++a)
    latest = std::max(latest, starts[a] + duration(a));
  return latest;
}

Result<void> Problem::check(const Starts &starts) const {
  if (starts.size() != size())
    return bad(fmt::format("the schedule has {} starts for {} activities",
                           starts.size(), size()));
  for (uint32_t a = 0; a < size(); ++a) {
    if (starts[a] < 0 || starts[a] > 2 * maxHorizon)
      return bad(fmt::format("activity {} starts at {}", a, starts[a]));
    for (uint32_t before : predecessors(a))
      if (starts[before] + duration(before) > starts[a])
        return bad(fmt::format("activity {} starts at {}, before activity {} "
                               "ends at {}",
                               a, starts[a], before,
                               starts[before] + duration(before)));
  }
  for (uint32_t r = 0; r < numResources(); ++r) {
    // Ends before starts at the same time: an activity frees what it held.
    std::vector<std::pair<Time, int32_t>> changes;
    for (uint32_t a = 0; a < size(); ++a)
      if (duration(a) > 0 && demand(a, r) > 0) {
        changes.emplace_back(starts[a], demand(a, r));
        changes.emplace_back(starts[a] + duration(a), -demand(a, r));
      }
    std::sort(changes.begin(), changes.end());
    int64_t used = 0;
    for (auto [time, change] : changes)
      if ((used += change) > capacity(r))
        return bad(fmt::format("resource {} is asked for {} of {} at time {}",
                               r, used, capacity(r), time));
  }
  return {};
}

Paths longestPaths(const Problem &problem) {
  Paths paths;
  paths.heads.assign(problem.size(), 0);
  paths.tails.assign(problem.size(), 0);
  const std::vector<uint32_t> &order = problem.topological();
  for (uint32_t a : order) {
    Time end = paths.heads[a] + problem.duration(a);
    paths.length = std::max(paths.length, end);
    for (uint32_t next : problem.successors(a))
      paths.heads[next] = std::max(paths.heads[next], end);
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (uint32_t next : problem.successors(*it))
      paths.tails[*it] = std::max(paths.tails[*it],
                                  problem.duration(next) + paths.tails[next]);
  return paths;
}

} // namespace mgpu::planner::exact
