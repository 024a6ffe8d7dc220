// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/WindowSearch.h"

#include "planner/schedule/problem/Problem.h"
#include "planner/schedule/search/Decoders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

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

static constexpr uint32_t leastNodes = 8, mostNodes = 28;
static constexpr uint64_t mostBranches = 100;

/// Where each node stands, and how long the chain is that follows its start in
/// this order.
void WindowRepair::look(const Schedule &schedule) {
  if (schedule.starts == seen)
    return;
  seen = schedule.starts;
  order = startOrder(problem, schedule);
  places.resize(order.size());
  tails.assign(order.size(), 0);
  constexpr uint32_t none = UINT32_MAX;
  last.assign(problem.numResources(), none);
  for (size_t k = order.size(); k-- > 0;) {
    const uint32_t node = order[k];
    places[node] = uint32_t(k);
    double &tail = tails[node];
    auto follow = [&](uint32_t next) {
      tail = std::max(tail, tails[next] + problem.durations[next]);
    };
    for (uint32_t next : problem.after[node])
      follow(next);
    for (const ResourceUse &use : problem.uses[node]) {
      if (last[use.resource] != none)
        follow(last[use.resource]);
      last[use.resource] = node;
    }
  }
}

Result<Problem> WindowRepair::partOf(std::span<const uint32_t> window) const {
  // A part is numbered as the problem is, so that edges ascend.
  Problem::Description part;
  part.resources = problem.resources;
  for (uint32_t i = 0; i < window.size(); ++i) {
    part.durations.push_back(problem.durations[window[i]]);
    for (const ResourceUse &use : problem.uses[window[i]])
      part.uses.push_back({i, use});
    for (uint32_t before : problem.before[window[i]]) {
      auto at = std::lower_bound(window.begin(), window.end(), before);
      if (at != window.end() && *at == before)
        part.precedences.push_back({uint32_t(at - window.begin()), i});
    }
  }
  return Problem::create(std::move(part));
}

/// Looks from place `at` on, in steps of 1 or -1, for the first node on each
/// stream of `wanted`; gives `value` of it, and 0 where there is none.
template <typename Value>
std::vector<double> WindowRepair::nearest(const std::vector<bool> &wanted,
                                          int64_t at, int step,
                                          Value value) const {
  std::vector<double> found(problem.numResources(), 0);
  std::vector<bool> open = wanted;
  auto left = std::count(open.begin(), open.end(), true);
  for (; at >= 0 && at < int64_t(order.size()) && left > 0; at += step)
    for (const ResourceUse &use : problem.uses[order[size_t(at)]])
      if (open[use.resource]) {
        open[use.resource] = false;
        found[use.resource] = value(order[size_t(at)]);
        --left;
      }
  return found;
}

/// The times before and after, which the places [from, end) may not move.
DisjunctiveSearch::Around
WindowRepair::aroundOf(std::span<const uint32_t> window, uint32_t from,
                       uint32_t end, const Schedule &schedule) const {
  std::vector<bool> wanted(problem.numResources());
  for (uint32_t node : window)
    for (const ResourceUse &use : problem.uses[node])
      wanted[use.resource] = true;
  auto endOf = [&](uint32_t node) {
    return schedule.starts[node] + problem.durations[node];
  };
  auto tailOf = [&](uint32_t node) {
    return tails[node] + problem.durations[node];
  };
  const std::vector<double> free =
                                nearest(wanted, int64_t(from) - 1, -1, endOf),
                            rest = nearest(wanted, end, 1, tailOf);
  DisjunctiveSearch::Around around;
  for (uint32_t node : window) {
    double head = 0, tail = 0;
    for (const ResourceUse &use : problem.uses[node]) {
      head = std::max(head, free[use.resource]);
      tail = std::max(tail, rest[use.resource]);
    }
    for (uint32_t before : problem.before[node])
      if (places[before] < from)
        head = std::max(head, endOf(before));
    for (uint32_t after : problem.after[node])
      if (places[after] >= end)
        tail = std::max(tail, tailOf(after));
    around.heads.push_back(head);
    around.tails.push_back(tail);
  }
  return around;
}

bool WindowRepair::improve(const Schedule &schedule, std::vector<double> &keys,
                           exact::Budget &budget) {
  look(schedule);
  const uint32_t count =
      std::min(problem.size(),
               leastNodes + uint32_t(random.below(mostNodes - leastNodes + 1)));
  const uint32_t from = uint32_t(random.below(problem.size() - count + 1)),
                 end = from + count;
  std::vector<uint32_t> window(order.begin() + from, order.begin() + end);
  std::sort(window.begin(), window.end());
  DisjunctiveSearch::Around around = aroundOf(window, from, end, schedule);
  Schedule mine;
  for (size_t i = 0; i < window.size(); ++i) {
    mine.starts.push_back(schedule.starts[window[i]]);
    mine.makespan =
        std::max(mine.makespan, mine.starts[i] + problem.durations[window[i]] +
                                    around.tails[i]);
  }
  // Where the longest chain passes beside the window there is nothing to gain.
  const double before = mine.makespan;
  if (before < schedule.makespan * (1 - 1e-9))
    return false;
  Result<Problem> part = partOf(window);
  if (!part)
    return false;
  DisjunctiveSearch search(*part, std::move(mine), std::move(around));
  search.run(mostBranches, budget);
  if (search.best().makespan >= before * (1 - 1e-9))
    return false;
  keys = schedule.starts;
  for (size_t i = 0; i < window.size(); ++i)
    keys[window[i]] = search.best().starts[i];
  return true;
}

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

/// List scheduling: whenever a resource is idle it starts the ready node of the
/// greatest priority. Read backward, `starts` are the times from a node's end
/// to the end of all. Returns the makespan. O((nodes + edges) log nodes).
static double listPass(const Problem &problem, Direction direction,
                       const std::vector<double> &priorities,
                       std::vector<double> &starts) {
  return ResourceLists(problem, direction, priorities, starts).run();
}

static constexpr double farthestMove = 1; // of a window

WindowSearch::WindowSearch(const Problem &problem, uint64_t seed)
    : problem(problem), noise(problem, seed, farthestMove),
      repairer(problem, ~seed), decoder(problem) {
  current.makespan = std::numeric_limits<double>::infinity();
}

/// Turns `trial`, a schedule read in one direction, into one read in the other
/// that is no longer: each node as early as it can be there.
double WindowSearch::justify(Direction direction, double makespan) {
  noise.turn(trial, makespan, direction, order);
  return decoder.decode(order, opposite(direction), trial);
}

void WindowSearch::keepIfNotLonger(double makespan) {
  if (makespan > current.makespan)
    return;
  current.starts.swap(trial);
  current.makespan = makespan;
}

void WindowSearch::listPasses(const std::vector<double> &heads,
                              const std::vector<double> &tails) {
  for (Direction direction : {Direction::Forward, Direction::Backward}) {
    const bool isForward = direction == Direction::Forward;
    double makespan =
        listPass(problem, direction, isForward ? tails : heads, trial);
    if (isForward)
      makespan = justify(Direction::Forward, makespan);
    keepIfNotLonger(justify(Direction::Backward, makespan));
  }
}

void WindowSearch::move() {
  const Direction direction =
      noise.random.below(2) ? Direction::Forward : Direction::Backward;
  noise.disturb(current, direction, order);
  double makespan = decoder.decode(order, direction, trial);
  if (direction == Direction::Forward)
    makespan = justify(Direction::Forward, makespan);
  keepIfNotLonger(justify(Direction::Backward, makespan));
}

void WindowSearch::repair(exact::Budget &budget) {
  if (!repairer.improve(current, trial, budget))
    return;
  noise.sort(trial, current.makespan, order);
  const double makespan = decoder.decode(order, Direction::Forward, trial);
  keepIfNotLonger(
      justify(Direction::Backward, justify(Direction::Forward, makespan)));
}

} // namespace mgpu::planner::search
