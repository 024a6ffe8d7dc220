// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/DisjunctiveSearch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>

namespace mgpu::planner {

// A schedule counts as shorter by this share of the makespan at least.
static constexpr double shorter = 1e-9;

bool DisjunctiveSearch::suits(const Problem &problem) {
  return problem.size() <= maxNodes &&
         std::all_of(problem.isUnit.begin(), problem.isUnit.end(),
                     [](bool isUnit) { return isUnit; });
}

DisjunctiveSearch::DisjunctiveSearch(const Problem &problem, Schedule best,
                                     Around around)
    : problem(problem), around(std::move(around)),
      words((problem.size() + 63) / 64), users(problem.numResources()),
      shortest(std::move(best)), heads(problem.size()), tails(problem.size()),
      order(problem.size()), done(problem.numResources()) {
  const uint32_t nodes = problem.size();
  for (uint32_t i = 0; i < nodes; ++i)
    if (problem.durations[i] > 0)
      for (const ResourceUse &use : problem.uses[i])
        users[use.resource].push_back(i);
  for (const std::vector<uint32_t> &mine : users)
    for (size_t a = 0; a < mine.size(); ++a)
      for (size_t b = a + 1; b < mine.size(); ++b)
        pairs.push_back({mine[a], mine[b]});
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  State root;
  root.before.assign(nodes * words, 0);
  root.after.assign(nodes * words, 0);
  for (uint32_t i = 0; i < nodes; ++i)
    for (uint32_t before : problem.before[i])
      if (!has(row(root.before, i), before))
        addEdge(root, before, i);
  orderAlike(root);
  open.push_back(std::move(root));
}

void DisjunctiveSearch::addEdge(State &state, uint32_t from,
                                uint32_t to) const {
  auto join = [&](std::vector<uint64_t> &rows, uint32_t node,
                  const uint64_t *more, uint32_t one) {
    uint64_t *mine = row(rows, node);
    for (size_t w = 0; w < words; ++w)
      mine[w] |= more[w];
    mine[one / 64] |= uint64_t(1) << (one % 64);
  };
  const std::vector<uint64_t> earlier(row(state.before, from),
                                      row(state.before, from) + words),
      later(row(state.after, to), row(state.after, to) + words);
  for (uint32_t i = 0; i < problem.size(); ++i) {
    if (i == to || has(later.data(), i))
      join(state.before, i, earlier.data(), from);
    if (i == from || has(earlier.data(), i))
      join(state.after, i, later.data(), to);
  }
}

/// Nodes that nothing tells apart may go in any order, so one is enough.
void DisjunctiveSearch::orderAlike(State &state) const {
  auto same = [](const auto &a, const auto &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  auto areAlike = [&](uint32_t a, uint32_t b) {
    std::span<const ResourceUse> mine = problem.uses[a],
                                 theirs = problem.uses[b];
    return problem.durations[a] == problem.durations[b] &&
           std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                      [](const ResourceUse &x, const ResourceUse &y) {
                        return x.resource == y.resource;
                      }) &&
           same(problem.before[a], problem.before[b]) &&
           same(problem.after[a], problem.after[b]) &&
           (around.heads.empty() || around.heads[a] == around.heads[b]) &&
           (around.tails.empty() || around.tails[a] == around.tails[b]);
  };
  std::vector<bool> hasNext(problem.size());
  for (auto [a, b] : pairs)
    if (!hasNext[a] && areAlike(a, b)) {
      addEdge(state, a, b);
      hasNext[a] = true;
    }
}

double DisjunctiveSearch::limit() const {
  return shortest.makespan * (1 - shorter);
}

/// Heads by stream, or tails: `claims`, by node.
void DisjunctiveSearch::measure(State &state, Direction direction,
                                std::vector<double> &claims) {
  const bool isForward = direction == Direction::Forward;
  std::vector<uint64_t> &rows = isForward ? state.before : state.after;
  const std::vector<double> &given = isForward ? around.heads : around.tails;
  std::vector<uint32_t> counts(problem.size());
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (size_t w = 0; w < words; ++w)
      counts[i] += uint32_t(std::popcount(row(rows, i)[w]));
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(counts[a], a) < std::pair(counts[b], b);
  });
  for (std::vector<uint32_t> &mine : done)
    mine.clear();
  for (uint32_t node : order) {
    const uint64_t *mine = row(rows, node);
    double us = given.empty() ? 0 : given[node];
    for (size_t w = 0; w < words; ++w)
      for (uint64_t left = mine[w]; left; left &= left - 1) {
        const uint32_t other = uint32_t(w * 64 + std::countr_zero(left));
        us = std::max(us, claims[other] + problem.durations[other]);
      }
    for (const std::vector<uint32_t> &stream : done) {
      double sum = 0;
      for (size_t k = stream.size(); k-- > 0;)
        if (has(mine, stream[k])) {
          sum += problem.durations[stream[k]];
          us = std::max(us, claims[stream[k]] + sum);
        }
    }
    claims[node] = us;
    if (problem.durations[node] > 0)
      for (const ResourceUse &use : problem.uses[node]) {
        std::vector<uint32_t> &stream = done[use.resource];
        auto at = std::upper_bound(
            stream.begin(), stream.end(), node,
            [&](uint32_t a, uint32_t b) { return claims[a] < claims[b]; });
        stream.insert(at, node);
      }
  }
}

/// Whether a stream cannot be within the limit even if what runs may be
/// interrupted: it always goes on with what has the longest tail.
bool DisjunctiveSearch::isTooLong(uint32_t resource) const {
  struct Job {
    double tail, left;
    bool operator<(const Job &other) const { return tail < other.tail; }
  };
  std::vector<uint32_t> jobs = users[resource];
  std::sort(jobs.begin(), jobs.end(),
            [&](uint32_t a, uint32_t b) { return heads[a] < heads[b]; });
  std::priority_queue<Job> ready;
  double now = 0;
  size_t next = 0;
  while (next < jobs.size() || !ready.empty()) {
    if (ready.empty())
      now = std::max(now, heads[jobs[next]]);
    for (; next < jobs.size() && heads[jobs[next]] <= now; ++next)
      ready.push({tails[jobs[next]], problem.durations[jobs[next]]});
    Job job = ready.top();
    ready.pop();
    if (next < jobs.size() && now + job.left > heads[jobs[next]]) {
      job.left -= heads[jobs[next]] - now;
      now = heads[jobs[next]];
      ready.push(job);
      continue;
    }
    now += job.left;
    if (now + job.tail >= limit())
      return true;
  }
  return false;
}

/// Draws all conclusions. False where nothing shorter is left.
bool DisjunctiveSearch::propagate(State &state) {
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    measure(state, Direction::Forward, heads);
    measure(state, Direction::Backward, tails);
    for (uint32_t i = 0; i < problem.size(); ++i)
      if (heads[i] + problem.durations[i] + tails[i] >= limit())
        return false;
    for (auto [a, b] : pairs) {
      if (has(row(state.before, b), a) || has(row(state.before, a), b))
        continue;
      const double both = problem.durations[a] + problem.durations[b];
      const bool canLead = heads[a] + both + tails[b] < limit(),
                 canFollow = heads[b] + both + tails[a] < limit();
      if (!canLead && !canFollow)
        return false;
      if (canLead && canFollow)
        continue;
      addEdge(state, canLead ? a : b, canLead ? b : a);
      hasChanged = true;
    }
  }
  for (uint32_t r = 0; r < problem.numResources(); ++r)
    if (isTooLong(r))
      return false;
  return true;
}

/// The pair whose order leaves least room, the roomier order first (Smith and
/// Cheng 1993). False where all are ordered.
bool DisjunctiveSearch::pick(State &state, uint32_t &first, uint32_t &second) {
  double least = 0;
  bool isFound = false;
  for (auto [a, b] : pairs) {
    if (has(row(state.before, b), a) || has(row(state.before, a), b))
      continue;
    const double both = problem.durations[a] + problem.durations[b],
                 leads = limit() - (heads[a] + both + tails[b]),
                 follows = limit() - (heads[b] + both + tails[a]),
                 low = std::min(leads, follows),
                 high = std::max(leads, follows);
    const double room = low / std::sqrt(low / high);
    if (isFound && room >= least)
      continue;
    isFound = true;
    least = room;
    first = leads >= follows ? a : b;
    second = leads >= follows ? b : a;
  }
  return isFound;
}

bool DisjunctiveSearch::run(uint64_t branches, exact::Budget &budget) {
  for (uint64_t k = 0; !open.empty() && k < branches && !budget.exhausted();
       ++k) {
    budget.spend();
    State state = std::move(open.back());
    open.pop_back();
    Branch &branch = witness.branches.emplace_back(); // a leaf, so far
    if (!propagate(state))
      continue;
    uint32_t first = 0, second = 0;
    if (pick(state, first, second)) {
      branch = {first, second};
      open.push_back(state);
      addEdge(open.back(), second, first);
      open.push_back(std::move(state));
      addEdge(open.back(), first, second);
      continue;
    }
    // All streams are in order, so heads are starts.
    shortest.starts = heads;
    shortest.makespan = 0;
    for (uint32_t i = 0; i < problem.size(); ++i)
      shortest.makespan = std::max(shortest.makespan,
                                   heads[i] + problem.durations[i] +
                                       (around.tails.empty() ? 0 : tails[i]));
  }
  return open.empty();
}

void DisjunctiveSearch::adopt(const Schedule &schedule) {
  if (schedule.makespan < shortest.makespan)
    shortest = schedule;
}

} // namespace mgpu::planner
