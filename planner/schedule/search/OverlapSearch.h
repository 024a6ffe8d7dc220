// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H

#include "planner/certificate/Certificate.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/exact/DisjunctiveSearch.h"
#include "planner/schedule/search/MemoryLadder.h"
#include "planner/schedule/search/WindowSearch.h"

#include <functional>
#include <optional>

namespace mgpu::planner::search {

/// Ever shorter schedules of a problem that fit its devices' memory: by
/// WindowSearch as long as what that finds fits, in turns with
/// DisjunctiveSearch where the problem suits() it; then by MemorySearch. Small
/// problems are searched by MemoryLadder from the start, in a way that does not
/// depend on the limits: with the same budget in nodes, and from first(), what
/// is kept under greater limits is never longer. One seed, one sequence of
/// schedules. It is the one portfolio of programs and DAG files.
class OverlapSearch {
public:
  /// Called with schedules that are shorter than all it kept. Returns the
  /// memory that the schedule's plan takes as a share of the limit, of the
  /// device where that is largest: up to 1 the plan was kept, above it was
  /// refused.
  using Offer = std::function<double(const Schedule &)>;

  OverlapSearch(const Problem &problem, uint64_t seed, Offer offer);
  OverlapSearch(const OverlapSearch &) = delete;

  /// The first plan, from list passes by longest paths. False where none was
  /// found that fits. Takes what time it takes to lower a peak; `budget` is
  /// looked at only after that.
  bool first(const exact::Budget &budget);
  /// Instead of first(): keeps a plan of this schedule.
  void startFrom(const Schedule &schedule);
  /// Tries on until the budget ends or the bound is met; a node is a move, or a
  /// branch of the exact search. After first() or startFrom().
  void improve(const Certificate &bound, exact::Budget &budget);
  /// The bound that the exact search has proven: no schedule is shorter. 0:
  /// nothing.
  double provenUs() const { return proven; }

  /// The sequence of the lowest peak that was found where first() was false.
  const std::vector<uint32_t> &lowestSequence() const { return lowest; }

private:
  const Schedule &working() const {
    return isTight ? memory.best() : windows.best();
  }
  double offerWorking();
  void offerFitting(const Schedule &schedule,
                    const std::vector<uint64_t> &peaks);
  void offerWindows();
  void climb(const exact::Budget &budget);
  void improveOnLadder(const Certificate &bound, exact::Budget &budget);
  bool searchExactly(uint64_t branches, exact::Budget &budget);
  bool settle(const exact::Budget &budget, bool mayDescend);
  size_t fullestDevice(const std::vector<uint64_t> &bytes) const;
  std::vector<uint64_t> rungBelow(const std::vector<uint64_t> &peaks,
                                  int k) const;
  std::optional<double> tryRung(const std::vector<uint32_t> &base,
                                const std::vector<uint64_t> &rung,
                                const exact::Budget &budget);
  bool offerAsIs(const std::vector<uint32_t> &sequence,
                 const exact::Budget &budget);
  enum class Descent : uint8_t { Leaps, Steps };
  bool descend(const std::vector<uint32_t> &base, const exact::Budget &budget,
               Descent descent);

  const Problem &problem;
  Offer offer;
  WindowSearch windows;
  MemorySearch memory;
  bool isMemoryLimited = false;
  bool isTight = false; ///< MemorySearch has taken over
  double kept;          ///< the makespan of the best plan
  double proven = 0;
  std::optional<DisjunctiveSearch> exact;
  std::optional<MemoryLadder> ladder; ///< of small problems
  std::vector<uint32_t> passes;       ///< for the ladder: what it starts from
  std::vector<uint32_t> lowest;       ///< the sequence of the lowest peak
  uint64_t lowestPeak = UINT64_MAX;
};

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_OVERLAPSEARCH_H
