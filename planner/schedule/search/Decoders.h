// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_DECODERS_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_DECODERS_H

#include "planner/schedule/problem/Problem.h"

#include <queue>
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

/// Makes a schedule of a sequence within the memory of the devices. Nodes start
/// in the order of the sequence; one whose buffers or shares of resources do
/// not fit waits until enough of what runs has ended. So a sequence that fits
/// when its nodes run one at a time always decodes: at worst a node waits until
/// nothing runs.
class SequenceDecoder {
public:
  explicit SequenceDecoder(const Problem &problem);

  /// False where a node does not fit even when nothing runs. `limits`: bytes by
  /// device, resident ones included.
  bool decode(const std::vector<uint32_t> &order,
              const std::vector<uint64_t> &limits, std::vector<double> &starts);
  double makespan() const { return end; } ///< of the last schedule decoded
  /// The most bytes live in it, by device, resident ones included.
  const std::vector<uint64_t> &peaks() const { return most; }

private:
  bool fitsNow(uint32_t node, const std::vector<uint64_t> &limits);
  void begin(uint32_t node, double start);
  void finishFirst();

  const Problem &problem;
  std::vector<uint64_t> live, more, most; ///< by device
  std::vector<uint32_t> openUsers; ///< by buffer: those that have not ended
  std::vector<uint8_t> isLive;     ///< by buffer
  std::vector<double> freeAt;      ///< by unit stream
  std::vector<double> taken;       ///< by other resource
  using Running = std::pair<double, uint32_t>; ///< end, node
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  double end = 0;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_DECODERS_H
