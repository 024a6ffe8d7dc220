// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H

// The memory that every schedule needs, and what is said where it is not there.

#include "planner/plan/Plan.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// A sequence of all nodes, run one at a time, and what is live at each of its
/// places; a part of it can be put in another order, and be put back.
class SequenceMemory {
public:
  SequenceMemory(const Problem &problem, std::vector<uint32_t> order);

  const std::vector<uint32_t> &order() const { return sequence; }
  uint32_t place(uint32_t node) const { return places[node]; }
  uint32_t firstUser(uint32_t buffer) const { return first[buffer]; }
  uint32_t lastUser(uint32_t buffer) const { return last[buffer]; }
  /// Bytes live on a device while the node at a place runs, resident included.
  int64_t live(uint32_t device, uint32_t at) const {
    return levels[device][at].during;
  }
  std::vector<uint64_t> peaks() const; ///< by device

  /// Puts the places [begin, begin + part.size()) in another order, which has
  /// the same nodes and keeps precedences. Returns by how much that changes the
  /// bytes above `targets`, summed over those places and the devices.
  double reorder(uint32_t begin, const std::vector<uint32_t> &part,
                 const std::vector<uint64_t> &targets);
  /// Takes back the last reorder().
  void undo();

private:
  struct Level {
    int64_t during = 0, after = 0;
  };

  void put(uint32_t begin, const std::vector<uint32_t> &part);
  void measure(uint32_t begin, uint32_t end);
  double excess(uint32_t begin, uint32_t end,
                const std::vector<uint64_t> &targets) const;

  const Problem &problem;
  std::vector<uint32_t> sequence, places, first, last, before;
  uint32_t beforeBegin = 0;
  std::vector<std::vector<Level>> levels; ///< by device, by place
};

/// A proof that some memory is needed, whatever the schedule.
struct MemoryBound {
  uint64_t bytes = 0; ///< live when `node` starts, at the least: resident
  uint32_t node = 0;  ///< bytes, buffers that it makes, and those of `live`
  std::vector<uint32_t> live; ///< buffers, the largest first
};

/// When `node` starts, all it depends on has ended, it and all that depends on
/// it has not started. This allows several sets of ended nodes; the one with
/// the least live on the device is a minimum cut (Picard 1976: closures; a
/// buffer costs its bytes if its first user is in the set and another is not).
/// No schedule has less live at that moment. Max-flow by Dinic's algorithm.
MemoryBound memoryBoundAt(const Problem &problem, uint32_t device,
                          uint32_t node);

/// The largest of the bounds at the `candidates` steps of `order`, run one at a
/// time, that have most live on the device, tried from the largest on; ends
/// early once one exceeds `enough`.
MemoryBound memoryBound(const Problem &problem, uint32_t device,
                        const std::vector<uint32_t> &order, uint32_t candidates,
                        uint64_t enough);

/// Why no plan of a frozen problem was found that fits its device: the step at
/// which too much is live in every order, what is live there and how much is
/// missing, or that this is not proven. `lowest` is the order of the least peak
/// that was found.
Error frozenDoesNotFit(const Problem &problem, const Dag &dag,
                       const std::vector<uint32_t> &lowest);
/// Says this of a program, in bytes of each device. `smallest` is the plan of
/// the smallest arena.
Error doesNotFit(std::span<const PhaseProblem> phases, const Plan &smallest,
                 const Dag &dag, uint64_t limit);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_MEMORYBOUND_H
