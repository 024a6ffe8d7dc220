// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_SERIALDECODER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_SERIALDECODER_H

#include "planner/schedule/problem/Problem.h"

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

/// Makes a schedule of an order: serial generation with insertion (Kelley 1963;
/// Kolisch 1996). Each node in turn takes the first gap of its resources that
/// holds it, so work that comes late in the order still fills gaps before.
/// Memory is not looked at.
class SerialDecoder {
public:
  explicit SerialDecoder(const Problem &problem)
      : problem(problem), gaps(problem.numResources()),
        levels(problem.numResources()) {}

  /// Fills `starts` (backward: the times from a node's end to the end of all)
  /// and returns the makespan. `order` holds all nodes, each after what it
  /// needs.
  double decode(const std::vector<uint32_t> &order, Direction direction,
                std::vector<double> &starts);

private:
  struct Gap {
    double begin, end;
  };
  using Gaps = std::vector<Gap>; ///< disjoint, rising; the last never ends

  static double firstFit(const Gaps &of, double from, double duration);
  static void take(Gaps &of, double start, double duration);
  double firstFit(const ResourceUse &use, double from, double duration) const;

  const Problem &problem;
  std::vector<Gaps> gaps;          ///< by resource: of unit streams
  std::vector<ShareLevels> levels; ///< by resource: of the others
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_SERIALDECODER_H
