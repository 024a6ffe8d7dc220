// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/WindowNoise.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner::search {

static constexpr int digitBits = 11, digits = 3;
static constexpr uint64_t digitCount = uint64_t(1) << digitBits;
static constexpr uint64_t keySteps = uint64_t(1) << (digitBits * digits);

void KeyOrder::order(std::vector<double> &keys, double longest,
                     Direction direction, std::vector<uint32_t> &out) {
  const uint32_t nodes = problem.size();
  items.resize(nodes);
  other.resize(nodes);
  uint32_t counts[digits][digitCount] = {};
  const double scale = longest > 0 ? double(keySteps - 1) / longest : 0;
  for (uint32_t k = 0; k < nodes; ++k) {
    const uint32_t node = problem.nodeAt(k, direction);
    double key = keys[node];
    for (uint32_t needed : problem.needs(node, direction))
      key = std::max(key, keys[needed]);
    keys[node] = key;
    const uint64_t step =
        uint64_t(std::clamp(key * scale, 0.0, double(keySteps - 1)));
    items[k] = {step, node};
    for (int d = 0; d < digits; ++d)
      ++counts[d][step >> (d * digitBits) & (digitCount - 1)];
  }
  for (int d = 0; d < digits; ++d) {
    uint32_t sum = 0;
    for (uint32_t &count : counts[d])
      sum += std::exchange(count, sum);
    for (const auto &item : items)
      other[counts[d][item.first >> (d * digitBits) & (digitCount - 1)]++] =
          item;
    items.swap(other);
  }
  out.resize(nodes);
  for (uint32_t k = 0; k < nodes; ++k)
    out[k] = items[k].second;
}

// The length of a window, as a share of the makespan.
static constexpr double shortestWindow = 0.001, longestWindow = 0.5;

void WindowNoise::disturb(const Schedule &schedule, Direction direction,
                          std::vector<uint32_t> &order) {
  const double makespan = schedule.makespan;
  const double length =
      makespan * shortestWindow *
      std::pow(longestWindow / shortestWindow, random.uniform());
  const double begin = random.uniform() * makespan - length / 2;
  const double share = random.uniform() * random.uniform();
  const double noise = farthestMove * length * random.uniform();
  const uint64_t which = random.below(problem.numResources() + 1);
  keys = schedule.starts;
  for (uint32_t i = 0; i < problem.size(); ++i) {
    if (direction == Direction::Backward)
      keys[i] = makespan - keys[i] - problem.durations[i];
    if (!(keys[i] >= begin && keys[i] < begin + length) ||
        random.uniform() >= share)
      continue;
    bool isChosen = which == problem.numResources();
    for (const ResourceUse &use : problem.uses[i])
      isChosen = isChosen || use.resource == which;
    if (isChosen)
      keys[i] = std::max(0.0, keys[i] + noise * (2 * random.uniform() - 1));
  }
  sorter.order(keys, makespan + noise, direction, order);
}

void WindowNoise::turn(const std::vector<double> &starts, double makespan,
                       Direction direction, std::vector<uint32_t> &order) {
  keys.resize(problem.size());
  for (uint32_t i = 0; i < problem.size(); ++i)
    keys[i] = makespan - starts[i] - problem.durations[i];
  sorter.order(keys, makespan, opposite(direction), order);
}

} // namespace mgpu::planner::search
