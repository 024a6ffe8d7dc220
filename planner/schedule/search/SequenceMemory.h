// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEMEMORY_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEMEMORY_H

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

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_SEQUENCEMEMORY_H
