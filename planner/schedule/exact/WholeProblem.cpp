// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/WholeProblem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::planner {

// The exact search packs capacities into 15 bits.
static constexpr int32_t mostCapacity = (1 << 15) - 1;

/// The least whole number of which each of the shares is a whole part; 0: none.
static int32_t capacityOf(const std::vector<double> &shares) {
  for (int32_t capacity = 1; capacity <= mostCapacity; ++capacity)
    if (std::all_of(shares.begin(), shares.end(), [&](double share) {
          const double part = share * capacity;
          return std::round(part) >= 1 &&
                 std::abs(part - std::round(part)) < 1e-9 * capacity;
        }))
      return capacity;
  return 0;
}

std::optional<exact::Problem> wholeProblem(const Problem &problem) {
  if (std::all_of(problem.isUnit.begin(), problem.isUnit.end(),
                  [](bool isUnit) { return isUnit; }))
    return std::nullopt;
  exact::Problem::Description whole;
  double sum = 0;
  for (double us : problem.durations) {
    sum += us;
    if (us != std::floor(us) || sum > exact::Problem::maxHorizon)
      return std::nullopt;
    whole.durations.push_back(exact::Time(us));
  }
  std::vector<std::vector<double>> shares(problem.numResources());
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (const ResourceUse &use : problem.uses[i])
      shares[use.resource].push_back(use.share);
  for (const std::vector<double> &each : shares) {
    whole.capacities.push_back(capacityOf(each));
    if (whole.capacities.back() == 0)
      return std::nullopt;
  }
  whole.demands.assign(size_t(problem.size()) * problem.numResources(), 0);
  for (uint32_t i = 0; i < problem.size(); ++i) {
    for (const ResourceUse &use : problem.uses[i])
      whole.demands[size_t(i) * problem.numResources() + use.resource] =
          int32_t(std::lround(use.share * whole.capacities[use.resource]));
    for (uint32_t before : problem.before[i])
      whole.precedences.push_back({before, i});
  }
  Result<exact::Problem> made = exact::Problem::create(std::move(whole));
  if (!made)
    return std::nullopt;
  return std::move(*made);
}

Result<Problem> problemOf(const exact::Problem &instance) {
  Problem::Description description;
  for (uint32_t r = 0; r < instance.numResources(); ++r)
    description.resources.push_back(fmt::format("resource {}", r));
  std::vector<uint32_t> number(instance.size());
  for (uint32_t k = 0; k < instance.size(); ++k) {
    const uint32_t activity = instance.topological()[k];
    number[activity] = k;
    description.durations.push_back(instance.duration(activity));
    for (uint32_t r = 0; r < instance.numResources(); ++r)
      if (instance.demand(activity, r) > 0)
        description.uses.push_back(
            {k,
             {r, double(instance.demand(activity, r)) / instance.capacity(r)}});
    for (uint32_t before : instance.predecessors(activity))
      description.precedences.push_back({number[before], k});
  }
  return Problem::create(std::move(description));
}

Schedule scheduleOf(const Problem &problem, const exact::Starts &starts) {
  Schedule schedule;
  for (uint32_t i = 0; i < problem.size(); ++i) {
    schedule.starts.push_back(starts[i]);
    schedule.makespan =
        std::max(schedule.makespan, double(starts[i]) + problem.durations[i]);
  }
  return schedule;
}

} // namespace mgpu::planner
