// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/Decoders.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace mgpu::planner::search {

double ShareLevels::firstFit(double from, double duration, double share) const {
  auto level = std::upper_bound(
      levels.begin(), levels.end(), from,
      [](double time, const Level &each) { return time < each.begin; });
  double start = from;
  for (--level; level != levels.end(); ++level) {
    if (level->begin >= start + duration - gapRounding && level->begin > start)
      return start;
    if (level->used + share > 1 + shareRounding) {
      const auto next = level + 1; // the last level is free
      start = next->begin;
    }
  }
  return start;
}

/// The level that begins at `time`, to rounding.
size_t ShareLevels::split(double time) {
  auto next = std::upper_bound(
      levels.begin(), levels.end(), time - gapRounding,
      [](double other, const Level &each) { return other < each.begin; });
  if (next == levels.end() || next->begin > time + gapRounding)
    next = levels.insert(next, {time, (next - 1)->used});
  return size_t(next - levels.begin());
}

void ShareLevels::take(double start, double duration, double share) {
  if (duration <= gapRounding)
    return;
  const size_t first = start <= gapRounding ? 0 : split(start);
  const size_t end = split(start + duration);
  for (size_t k = first; k < end; ++k)
    levels[k].used += share;
}

double SerialDecoder::firstFit(const Gaps &of, double from, double duration) {
  auto fitsAt = [&](const Gap &gap) {
    return std::max(gap.begin, from) + duration <= gap.end + gapRounding;
  };
  if (from >= of.back().begin)
    return from;
  auto gap = std::partition_point(
      of.begin(), of.end(), [&](const Gap &each) { return each.end <= from; });
  while (!fitsAt(*gap))
    ++gap;
  return std::max(gap->begin, from);
}

void SerialDecoder::take(Gaps &of, double start, double duration) {
  if (duration <= gapRounding)
    return;
  const double end = start + duration;
  auto gap = of.end() - 1;
  if (start < gap->begin)
    gap = std::partition_point(of.begin(), of.end(), [&](const Gap &each) {
      return each.end <= start + gapRounding;
    });
  const bool before = start - gap->begin > gapRounding,
             after = gap->end - end > gapRounding;
  if (before && after) {
    const double begin = gap->begin;
    gap->begin = end;
    of.insert(gap, {begin, start});
  } else if (before) {
    gap->end = start;
  } else if (after) {
    gap->begin = end;
  } else {
    of.erase(gap);
  }
}

double SerialDecoder::firstFit(const ResourceUse &use, double from,
                               double duration) const {
  return problem.isUnit[use.resource]
             ? firstFit(gaps[use.resource], from, duration)
             : levels[use.resource].firstFit(from, duration, use.share);
}

double SerialDecoder::decode(const std::vector<uint32_t> &order,
                             Direction direction, std::vector<double> &starts) {
  for (Gaps &of : gaps)
    of.assign(1, {0, std::numeric_limits<double>::infinity()});
  for (ShareLevels &of : levels)
    of.clear();
  starts.resize(problem.size());
  double makespan = 0;
  for (uint32_t node : order) {
    const double duration = problem.durations[node];
    double start = 0;
    for (uint32_t needed : problem.needs(node, direction))
      start = std::max(start, starts[needed] + problem.durations[needed]);
    std::span<const ResourceUse> uses = problem.uses[node];
    // Until all its resources agree.
    for (size_t agreed = 0, k = 0; agreed < uses.size();
         k = (k + 1) % uses.size()) {
      double at = firstFit(uses[k], start, duration);
      agreed = at > start ? 1 : agreed + 1;
      start = at;
    }
    for (const ResourceUse &use : uses)
      if (problem.isUnit[use.resource])
        take(gaps[use.resource], start, duration);
      else
        levels[use.resource].take(start, duration, use.share);
    starts[node] = start;
    makespan = std::max(makespan, start + duration);
  }
  return makespan;
}

SequenceDecoder::SequenceDecoder(const Problem &problem)
    : problem(problem), live(problem.devices.size()),
      more(problem.devices.size()), most(problem.devices.size()),
      openUsers(problem.buffers.size()), isLive(problem.buffers.size()),
      freeAt(problem.numResources()), taken(problem.numResources()) {}

bool SequenceDecoder::fitsNow(uint32_t node,
                              const std::vector<uint64_t> &limits) {
  for (const ResourceUse &use : problem.uses[node])
    if (!problem.isUnit[use.resource] &&
        taken[use.resource] + use.share > 1 + shareRounding)
      return false;
  std::fill(more.begin(), more.end(), 0);
  for (uint32_t b : problem.touched[node])
    if (!isLive[b])
      more[problem.buffers[b].device] += problem.buffers[b].bytes;
  for (size_t d = 0; d < more.size(); ++d)
    if (more[d] > 0 && live[d] + more[d] > limits[d])
      return false;
  return true;
}

void SequenceDecoder::begin(uint32_t node, double start) {
  for (uint32_t b : problem.touched[node])
    if (!isLive[b]) {
      isLive[b] = true;
      live[problem.buffers[b].device] += problem.buffers[b].bytes;
    }
  for (size_t d = 0; d < live.size(); ++d)
    most[d] = std::max(most[d], live[d]);
  const double ends = start + problem.durations[node];
  for (const ResourceUse &use : problem.uses[node])
    if (problem.isUnit[use.resource])
      freeAt[use.resource] = ends;
    else
      taken[use.resource] += use.share;
  running.push({ends, node});
  end = std::max(end, ends);
}

void SequenceDecoder::finishFirst() {
  const uint32_t node = running.top().second;
  running.pop();
  for (const ResourceUse &use : problem.uses[node])
    taken[use.resource] -= problem.isUnit[use.resource] ? 0 : use.share;
  for (uint32_t b : problem.touched[node])
    if (--openUsers[b] == 0 && !problem.buffers[b].isKept)
      live[problem.buffers[b].device] -= problem.buffers[b].bytes;
}

bool SequenceDecoder::decode(const std::vector<uint32_t> &order,
                             const std::vector<uint64_t> &limits,
                             std::vector<double> &starts) {
  for (size_t d = 0; d < live.size(); ++d)
    live[d] = most[d] = problem.devices[d].residentBytes;
  for (uint32_t b = 0; b < openUsers.size(); ++b)
    openUsers[b] = uint32_t(problem.users[b].size());
  std::fill(isLive.begin(), isLive.end(), 0);
  std::fill(freeAt.begin(), freeAt.end(), 0);
  std::fill(taken.begin(), taken.end(), 0);
  running = {};
  starts.resize(problem.size());
  double now = 0;
  end = 0;
  for (uint32_t node : order) {
    for (uint32_t needed : problem.before[node])
      now = std::max(now, starts[needed] + problem.durations[needed]);
    for (const ResourceUse &use : problem.uses[node])
      now = std::max(now, freeAt[use.resource]);
    while (!running.empty() && running.top().first <= now)
      finishFirst();
    while (!fitsNow(node, limits)) {
      if (running.empty())
        return false;
      now = running.top().first;
      while (!running.empty() && running.top().first <= now)
        finishFirst();
    }
    starts[node] = now;
    begin(node, now);
  }
  return true;
}

} // namespace mgpu::planner::search
