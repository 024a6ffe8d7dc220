// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H

// A scheduling problem, and nothing else: bounds, certificates and searches all
// read this one form, whatever it was made from. Nodes run without a break,
// each for its duration, after the nodes it depends on; resources say what may
// run at a time; buffers say what memory that takes. The latest end is to be
// least.

#include "planner/dag/PlanPart.h"
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

/// When each node of a problem starts, in microseconds.
struct Schedule {
  std::vector<double> starts;
  double makespan = 0; ///< the latest end
};

/// The nodes by start, each after what it needs; of equal starts those that
/// take no time first.
std::vector<uint32_t> startOrder(const Problem &problem,
                                 const Schedule &schedule);

/// Precedences and resources hold, and all lies within [0, makespan]. It shares
/// nothing with the searches. Memory is not its business (peakBytes()).
Result<void> check(const Problem &problem, const Schedule &schedule);

/// The most bytes live at a time, by device, resident ones included. At equal
/// times (to a nanosecond) what ends is freed before what starts is allocated.
std::vector<uint64_t> peakBytes(const Problem &problem,
                                const Schedule &schedule);

/// The peak if the nodes run one at a time in `order`.
std::vector<uint64_t> sequencePeakBytes(const Problem &problem,
                                        const std::vector<uint32_t> &order);

/// Whether each device's bytes are within its limit.
bool fits(const Problem &problem, const std::vector<uint64_t> &bytes);

/// One phase of a program as a problem. Phases follow each other whole, so
/// least makespans of a replay add up, and so do bounds.
struct PhaseProblem {
  Phase phase = Phase::Replay;
  double times = 1; ///< timesInReplay() of the phase
  Problem problem;
  std::vector<NodeId> nodes; ///< nodes of the DAG, by node of the problem
};

/// The planning model of programs (planner/schedule/list/Schedulers.h), a
/// problem for each phase that has nodes, in their order. Each class of work of
/// each device, and of the host, is a unit stream. Device buffers that share
/// memory, which those of a replay alone do, are buffers; others are resident.
/// `durations` are by node of the DAG, in microseconds; `memoryBytes` is the
/// limit of each device.
Result<std::vector<PhaseProblem>>
phaseProblems(const Dag &dag, std::span<const double> durations,
              uint64_t memoryBytes = UINT64_MAX);

/// Whether the times of `phases[k]` count from 0, and not from the end of the
/// phase before.
inline bool beginsPart(std::span<const PhaseProblem> phases, size_t k) {
  return k == 0 || partOf(phases[k - 1].phase) != partOf(phases[k].phase);
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_PROBLEM_H
