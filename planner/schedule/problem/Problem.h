// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H

// A scheduling problem, and nothing else: bounds, certificates and searches all
// read this one form, whatever it was made from. Nodes run without a break,
// each for its duration, after the nodes it depends on; resources say what may
// run at a time; buffers say what memory that takes. The latest end is to be
// least.

#include "planner/dag/Rows.h"
#include "support/Result.h"

#include <string>

namespace mgpu::planner {

/// Which part of a resource a node holds from its start to its end. The shares
/// of the nodes that run at one time sum to at most 1.
struct ResourceUse {
  uint32_t resource = 0;
  double share = 1; ///< in (0, 1]; 1 is all of it
};

/// Memory that is live from the first start of a node that uses it to the last
/// end of one.
struct ProblemBuffer {
  uint32_t device = 0;
  uint64_t bytes = 0;
  bool isKept = false; ///< live to the end of the schedule
};

/// The memory of one device, in bytes.
struct ProblemDevice {
  uint64_t residentBytes = 0;        ///< live all the time
  uint64_t memoryBytes = UINT64_MAX; ///< the limit, resident bytes included
};

/// The two ways to read a problem: from its start or, with every edge turned
/// round and times counted from the end, from its end.
enum class Direction : uint8_t { Forward, Backward };
inline Direction opposite(Direction direction) {
  return direction == Direction::Forward ? Direction::Backward
                                         : Direction::Forward;
}

/// A checked instance. Nodes are numbered topologically: every edge goes from a
/// lesser to a greater number. Times are microseconds.
class Problem {
public:
  struct Description {
    std::vector<double> durations;
    /// Names, for people. A resource of which every user takes the whole is a
    /// unit stream: it runs one node at a time. Others are cumulative.
    std::vector<std::string> resources;
    std::vector<Rows<ResourceUse>::Entry> uses;             ///< by node
    std::vector<std::pair<uint32_t, uint32_t>> precedences; ///< before, after
    std::vector<ProblemDevice> devices;
    std::vector<ProblemBuffer> buffers;
    std::vector<Rows<uint32_t>::Entry> users; ///< buffer, node
  };

  /// Refuses durations that are not finite numbers from 0 on, shares outside
  /// (0, 1], edges that do not ascend, a buffer without users, and numbers that
  /// are out of range.
  static Result<Problem> create(Description description);

  uint32_t size() const { return uint32_t(durations.size()); }
  uint32_t numResources() const { return uint32_t(resources.size()); }
  /// The nodes that must end before the node starts, read in a direction.
  std::span<const uint32_t> needs(uint32_t node, Direction direction) const {
    return direction == Direction::Forward ? before[node] : after[node];
  }
  /// The k-th node of a topological order, read in a direction.
  uint32_t nodeAt(uint32_t k, Direction direction) const {
    return direction == Direction::Forward ? k : size() - 1 - k;
  }
  /// The time a node takes of a resource if the resource could be cut freely:
  /// duration times share.
  double work(uint32_t node, const ResourceUse &use) const {
    return durations[node] * use.share;
  }

  std::vector<double> durations;
  std::vector<std::string> resources;
  std::vector<bool> isUnit;     ///< by resource
  Rows<ResourceUse> uses;       ///< by node
  Rows<uint32_t> before, after; ///< by node
  std::vector<ProblemDevice> devices;
  std::vector<ProblemBuffer> buffers;
  Rows<uint32_t> users;   ///< by buffer, ascending: the first makes it
  Rows<uint32_t> touched; ///< by node: the buffers it uses
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H
