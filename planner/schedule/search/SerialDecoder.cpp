// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/SerialDecoder.h"

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

} // namespace mgpu::planner::search
