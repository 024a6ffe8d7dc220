// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/ShareLevels.h"

#include <algorithm>
#include <cstddef>

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

} // namespace mgpu::planner::search
