// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/unit/planner/RandomProblem.h"

#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

namespace mgpu::planner::testing {

Problem randomProblem(uint64_t seed, const RandomProblemOptions &options) {
  Random random(seed);
  Problem::Description description;
  for (uint32_t r = 0; r < options.resources; ++r) {
    description.resources.push_back(fmt::format("stream {}", r));
    description.devices.push_back({1000, UINT64_MAX});
  }
  for (uint32_t i = 0; i < options.nodes; ++i) {
    description.durations.push_back(
        random.below(12) == 0 ? 0 : double(1 + random.below(9)));
    std::vector<uint32_t> resources(options.resources);
    std::iota(resources.begin(), resources.end(), 0u);
    const uint64_t uses =
        1 + random.below(std::min(options.mostUses, options.resources));
    for (uint64_t k = 0; k < uses; ++k) {
      std::swap(resources[k],
                resources[k + random.below(resources.size() - k)]);
      bool isShared = options.isCumulative && resources[k] == 0;
      description.uses.push_back(
          {i,
           {resources[k], isShared ? double(1 + random.below(4)) / 4 : 1.0}});
    }
    bool hasUser = false;
    for (uint32_t to = i + 1; to < options.nodes; ++to)
      if (random.below(options.edgeOneIn) == 0) {
        description.precedences.push_back({i, to});
        description.users.push_back({i, to});
        hasUser = true;
      }
    description.users.push_back({i, i});
    description.buffers.push_back(
        {resources[0], 256 * random.below(40), !hasUser});
  }
  Result<Problem> problem = Problem::create(std::move(description));
  EXPECT_TRUE(problem) << problem.error().message;
  return std::move(*problem);
}

namespace {

class EveryOrder {
public:
  explicit EveryOrder(const Problem &problem)
      : problem(problem), starts(problem.size(), -1) {}

  double run() {
    place(0, 0);
    return best;
  }

private:
  double endOf(uint32_t node) const {
    return starts[node] + problem.durations[node];
  }
  /// Whether the node can run from `start` on beside what is placed.
  bool isFree(uint32_t node, double start) const {
    const double end = start + problem.durations[node];
    std::vector<double> times{start};
    for (uint32_t i = 0; i < problem.size(); ++i)
      if (starts[i] > start && starts[i] < end)
        times.push_back(starts[i]);
    for (double time : times)
      for (const ResourceUse &mine : problem.uses[node]) {
        double used = mine.share;
        for (uint32_t i = 0; i < problem.size(); ++i)
          if (starts[i] >= 0 && starts[i] <= time && time < endOf(i))
            for (const ResourceUse &use : problem.uses[i])
              used += use.resource == mine.resource ? use.share : 0;
        if (problem.durations[node] > 0 && used > 1 + 1e-9)
          return false;
      }
    return true;
  }
  void place(uint32_t count, double makespan) {
    if (makespan >= best)
      return;
    if (count == problem.size()) {
      best = makespan;
      return;
    }
    for (uint32_t node = 0; node < problem.size(); ++node) {
      double ready = 0;
      bool isReady = starts[node] < 0;
      for (uint32_t before : problem.before[node]) {
        isReady = isReady && starts[before] >= 0;
        ready = std::max(ready, endOf(before));
      }
      if (!isReady)
        continue;
      double first = 1e9;
      for (uint32_t i = 0; i < problem.size(); ++i)
        if (starts[i] >= 0 && endOf(i) > ready && isFree(node, endOf(i)))
          first = std::min(first, endOf(i));
      starts[node] = isFree(node, ready) ? ready : first;
      place(count + 1, std::max(makespan, endOf(node)));
      starts[node] = -1;
    }
  }

  const Problem &problem;
  std::vector<double> starts; ///< below 0: not placed
  double best = 1e9;
};

} // namespace

namespace {

class EveryStartOrder {
public:
  explicit EveryStartOrder(const Problem &problem)
      : problem(problem), starts(problem.size(), -1) {}

  double run() {
    place(0, 0, 0);
    return best;
  }

private:
  double endOf(uint32_t node) const {
    return starts[node] + problem.durations[node];
  }
  bool runsAt(uint32_t node, double time) const {
    return starts[node] >= 0 && endOf(node) > time;
  }
  /// Whether the node can start at `time`, when nothing starts after it.
  bool fitsAt(uint32_t node, double time) const {
    std::vector<double> used(problem.numResources());
    for (const ResourceUse &use : problem.uses[node])
      used[use.resource] = use.share;
    std::vector<uint64_t> bytes;
    for (const ProblemDevice &device : problem.devices)
      bytes.push_back(device.residentBytes);
    for (uint32_t i = 0; i < problem.size(); ++i)
      if (runsAt(i, time))
        for (const ResourceUse &use : problem.uses[i])
          if ((used[use.resource] += use.share) > 1 + 1e-9)
            for (const ResourceUse &mine : problem.uses[node])
              if (mine.resource == use.resource)
                return false;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
      const ProblemBuffer &buffer = problem.buffers[b];
      bool isBegun = false, isOpen = buffer.isKept;
      for (uint32_t user : problem.users[b]) {
        isBegun = isBegun || user == node || starts[user] >= 0;
        isOpen = isOpen || starts[user] < 0 || runsAt(user, time);
      }
      if (isBegun && isOpen)
        bytes[buffer.device] += buffer.bytes;
    }
    for (size_t d = 0; d < bytes.size(); ++d)
      if (bytes[d] > problem.devices[d].memoryBytes)
        return false;
    return true;
  }
  void place(uint32_t count, double now, double makespan) {
    if (makespan >= best)
      return;
    if (count == problem.size()) {
      best = makespan;
      return;
    }
    for (uint32_t node = 0; node < problem.size(); ++node) {
      double ready = now;
      bool isReady = starts[node] < 0;
      for (uint32_t before : problem.before[node]) {
        isReady = isReady && starts[before] >= 0;
        ready = std::max(ready, endOf(before));
      }
      if (!isReady)
        continue;
      double first = fitsAt(node, ready) ? ready : 1e9;
      for (uint32_t i = 0; i < problem.size(); ++i)
        if (starts[i] >= 0 && endOf(i) > ready && endOf(i) < first &&
            fitsAt(node, endOf(i)))
          first = endOf(i);
      if (first == 1e9)
        continue;
      starts[node] = first;
      place(count + 1, first, std::max(makespan, endOf(node)));
      starts[node] = -1;
    }
  }

  const Problem &problem;
  std::vector<double> starts; ///< below 0: not placed
  double best = 1e9;
};

} // namespace

double leastMakespanWithin(const Problem &problem) {
  return EveryStartOrder(problem).run();
}

double leastMakespan(const Problem &problem) {
  return EveryOrder(problem).run();
}

} // namespace mgpu::planner::testing
