// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYLADDER_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYLADDER_H

#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/search/Decoders.h"
#include "planner/schedule/search/WindowSearch.h"

#include <functional>
#include <map>
#include <memory>

namespace mgpu::planner::search {

/// Ever shorter schedules within the memory of the devices. A move puts noise
/// on the order of one window of time, forward, or backward where the nodes
/// then run as late as they can; SequenceDecoder makes a schedule of that,
/// which stays if it is not longer. One seed, one sequence of moves.
class MemorySearch {
public:
  /// Gets every schedule that a move makes, kept or not, and its peaks by
  /// device.
  using Visit =
      std::function<void(const Schedule &, const std::vector<uint64_t> &)>;

  MemorySearch(const Problem &problem, uint64_t seed, Visit visit = nullptr);
  MemorySearch(const MemorySearch &) = delete;

  /// Lowers the peak of a sequence until it fits `limits` (bytes by device,
  /// resident ones included), and takes it as its schedule. False where none
  /// was found that fits; best() is as before then. `sequence` is the lowest
  /// found.
  bool start(std::vector<uint32_t> &sequence,
             const std::vector<uint64_t> &limits, const exact::Budget &budget);
  void move();

  /// A schedule within the limits that was found elsewhere; longer ones are
  /// ignored.
  void adopt(const Schedule &schedule) {
    if (schedule.makespan < current.makespan)
      current = schedule;
  }

  const Schedule &best() const { return current; }

private:
  const Problem &problem;
  const uint64_t seed;
  Visit visit;
  WindowNoise noise;
  SequenceDecoder decoder;
  SerialDecoder serial;
  std::vector<uint64_t> limits;
  std::vector<uint32_t> order;
  Schedule trial, current;
};

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
