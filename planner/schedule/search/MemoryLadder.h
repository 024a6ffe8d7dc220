// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYLADDER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYLADDER_H

#include "planner/schedule/search/MemorySearch.h"

#include <map>
#include <memory>

namespace mgpu::planner::search {

/// Schedules of one small problem for all limits of memory at once. Its trials
/// do not depend on the limits of the problem, so whatever fits one limit was
/// also seen by a search for a greater one. The rungs of the ladder are limits
/// that the sequences themselves give, from the least they can be lowered to up
/// to what a schedule without limits takes.
class MemoryLadder {
public:
  static constexpr uint32_t maxNodes = 128;
  /// Whether the problem is small, and of one limit for all its devices.
  static bool suits(const Problem &problem);

  /// Gets every schedule tried that is shorter than all those of as little
  /// memory, and its peaks by device.
  using Visit = MemorySearch::Visit;
  MemoryLadder(const Problem &problem, uint64_t seed, Visit visit);
  MemoryLadder(const MemoryLadder &) = delete;

  /// Lowers a sequence step by step, and tries it after each.
  void lower(std::vector<uint32_t> sequence, const exact::Budget &budget);
  /// Makes rungs of the sequences lowered so far, once; the highest is of
  /// `most` bytes.
  void build(uint64_t most, const exact::Budget &budget);
  /// One move on each rung.
  void round();

  /// The sequence of the lowest peak.
  const std::vector<uint32_t> &lowestSequence() const;

private:
  struct Step {
    uint64_t limit; ///< the bytes of any device
    double makespan;
    std::vector<uint32_t> sequence;
  };

  std::vector<uint64_t> limitsOf(uint64_t bytes) const {
    return std::vector<uint64_t>(problem.devices.size(), bytes);
  }
  void visitIfBest(const Schedule &schedule,
                   const std::vector<uint64_t> &peaks);

  const Problem &problem;
  const uint64_t seed;
  Visit visit;
  std::vector<Step> steps;
  std::vector<std::unique_ptr<MemorySearch>> rungs; ///< the lowest first
  std::map<double, uint64_t> front; ///< makespans of ever less memory
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYLADDER_H
