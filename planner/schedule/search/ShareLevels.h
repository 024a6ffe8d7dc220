// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_SHARELEVELS_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_SHARELEVELS_H

#include <vector>

namespace mgpu::planner::search {

/// Shares of a resource sum to at most 1, but for rounding.
inline constexpr double shareRounding = 1e-9;
/// Sums of times in another order round differently: what fits but for so many
/// microseconds fits.
inline constexpr double gapRounding = 1e-7;

/// Which part of a cumulative resource is taken when.
class ShareLevels {
public:
  void clear() { levels.assign(1, {0, 0}); }
  /// The first time from `from` on at which `share` is free for `duration`.
  double firstFit(double from, double duration, double share) const;
  void take(double start, double duration, double share);

private:
  struct Level {
    double begin, used;
  };
  size_t split(double time);

  std::vector<Level> levels{{0, 0}}; ///< rising; the last never ends
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_SHARELEVELS_H
