// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_EXACT_BUDGET_H
#define MGPU_PLANNER_SCHEDULE_EXACT_BUDGET_H

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace mgpu::planner::exact {

enum class ClockKind : uint8_t {
  Wall,      ///< time as it passes
  ThreadCpu, ///< time this thread has run; fair on a machine that is shared
};

/// How long a search may go on: time, or nodes, which give the same result on
/// every machine. Each search says what a node is.
class Budget {
public:
  explicit Budget(double seconds, uint64_t nodes = UINT64_MAX,
                  ClockKind kind = ClockKind::Wall)
      : seconds(seconds), nodes(nodes), kind(kind), begin(now()) {}

  /// A budget of its own from now on: one of `count` equal parts.
  Budget part(uint64_t count) const {
    return Budget(seconds / double(count),
                  nodes == UINT64_MAX ? nodes : nodes / count, kind);
  }

  /// The rest of the budget, and at most so many nodes.
  Budget rest(uint64_t most) const {
    return Budget(std::max(0.0, seconds - elapsed()),
                  std::min(most, nodes - std::min(spent, nodes)), kind);
  }

  void spend(uint64_t count = 1) { spent += count; }
  uint64_t spentNodes() const { return spent; }
  double elapsed() const { return now() - begin; }
  /// Asks the clock at each call: ask every few nodes.
  bool exhausted() const { return spent >= nodes || elapsed() >= seconds; }

  bool isOutOfTime() const { return elapsed() >= seconds; }

private:
  double now() const {
    timespec time;
    clock_gettime(kind == ClockKind::Wall ? CLOCK_MONOTONIC
                                          : CLOCK_THREAD_CPUTIME_ID,
                  &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  }

  double seconds;
  uint64_t nodes, spent = 0;
  ClockKind kind;
  double begin;
};

} // namespace mgpu::planner::exact

#endif // MGPU_PLANNER_SCHEDULE_EXACT_BUDGET_H
