// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapSearch.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mgpu::planner::search {

static constexpr int maxLowerings = 12;
static constexpr double never = std::numeric_limits<double>::infinity();

OverlapSearch::OverlapSearch(const OverlapModel &model, uint64_t limit,
                             uint64_t seed, Accept accept, bool keepsPlaces)
    : model(model), limit(limit), keepsPlaces(keepsPlaces),
      accept(std::move(accept)), rng(seed), list(model, keepsPlaces) {
  for (uint32_t i = 0; i < model.size(); ++i)
    bound += model.isCollective[i] ? 0 : model.durations[i];
}

/// Makes a schedule and keeps it if it is the best so far.
bool OverlapSearch::attempt(size_t order, const UrgencyRule &rule) {
  const std::vector<uint32_t> &base = orders[order];
  if (!list.run(base, urgency(model, base, rule, bound), limit, trial))
    return false;
  if (!bestSchedule.order.empty() && trial.makespan >= bestSchedule.makespan)
    return false;
  if (accept && !accept(trial))
    return false;
  std::swap(bestSchedule, trial);
  bestOrder = order;
  bestRule = rule;
  return true;
}

bool OverlapSearch::first() {
  std::vector<uint32_t> program(model.size());
  std::iota(program.begin(), program.end(), 0u);
  std::vector<double> keys(program.begin(), program.end());
  orders.assign(1, keepsPlaces ? program : lowMemoryOrder(model, keys));
  lowestPeak = sequentialPeak(model, orders[0]);
  for (int k = 0; k < maxLowerings && lowestPeak <= limit; ++k) {
    if (attempt(0, {1000, 1000, {}}))
      return true;
    limit -= limit / 100;
  }
  return false;
}

/// Where the kernels waited longest, and for which collective: asks for some
/// of those, and for what they waited for, sooner.
void OverlapSearch::hurry(UrgencyRule &rule) {
  std::vector<std::pair<double, uint32_t>> gaps; // length, collective
  double end = 0;
  uint32_t last = UINT32_MAX; // collective that ended last so far, by order
  std::vector<uint32_t> collectives;
  for (uint32_t node : bestSchedule.order)
    if (model.isCollective[node])
      collectives.push_back(node);
  size_t next = 0;
  auto endOf = [&](uint32_t node) {
    return bestSchedule.starts[node] + model.durations[node];
  };
  auto note = [&](double from, double to) {
    for (; next < collectives.size() && endOf(collectives[next]) <= to; ++next)
      last = collectives[next];
    if (to > from && last != UINT32_MAX)
      gaps.push_back({to - from, last});
  };
  for (uint32_t node : bestSchedule.order)
    if (!model.isCollective[node]) {
      note(end, bestSchedule.starts[node]);
      end = endOf(node);
    }
  note(end, bestSchedule.makespan);
  if (gaps.empty())
    return;
  if (rule.earlier.empty())
    rule.earlier.assign(model.size(), 0);
  double total = 0;
  for (auto [length, node] : gaps)
    total += length;
  // A gap is picked in proportion to its length.
  uint32_t count = 1 + rng.below(uint32_t(std::min<size_t>(gaps.size(), 40)));
  for (uint32_t k = 0; k < count; ++k) {
    double at = rng.uniform() * total;
    size_t pick = 0;
    while (pick + 1 < gaps.size() && at >= gaps[pick].first)
      at -= gaps[pick++].first;
    rule.earlier[gaps[pick].second] += gaps[pick].first * 4 * rng.uniform();
  }
}

void OverlapSearch::improve(rcpsp::Budget &budget) {
  auto done = [&] {
    return bestSchedule.makespan <= bound || budget.exhausted();
  };
  if (orders.size() == 1 && !keepsPlaces) {
    std::vector<uint32_t> program(model.size());
    std::iota(program.begin(), program.end(), 0u);
    std::vector<double> keys(program.begin(), program.end());
    // Orders that use what memory there is: nearer to the program's.
    for (double share : {0.75, 0.9, 0.97})
      orders.push_back(
          lowMemoryOrder(model, keys, uint64_t(double(limit) * share)));
    keys = pathPriorities(model);
    for (double &key : keys)
      key = -key;
    orders.push_back(std::move(program));
    orders.push_back(lowMemoryOrder(model, keys));
  }
  for (size_t order = 0; order < orders.size(); ++order)
    for (double margin : {0.0, 1e3, 1e4, 1e5, 5e5, never})
      for (double lookahead : {300.0, 3000.0, 30000.0}) {
        if (done())
          return;
        budget.spend();
        attempt(order, {lookahead, margin, {}});
      }
  while (!done()) {
    UrgencyRule rule = bestRule;
    hurry(rule);
    if (rng.below(4) == 0)
      rule.lookahead *= 0.5 + rng.uniform();
    if (rng.below(4) == 0 && rule.margin < never)
      rule.margin *= 0.5 + rng.uniform();
    if (rng.below(3) == 0)
      for (double &value : rule.earlier)
        value *= 0.5 + 0.5 * rng.uniform();
    budget.spend();
    attempt(bestOrder, rule);
  }
}

} // namespace mgpu::planner::search
