// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_SEARCHSCORE_H
#define MGPU_BENCH_SUITES_SEARCHSCORE_H

// How good a search strategy is on a recorded space: the performance score of
// Willemsen et al., "A methodology for comparing optimization algorithms for
// auto-tuning", Future Generation Computer Systems 159 (2024), in these terms:
//
// - The N valid times run from worst to best; o is the best, m the median.
// - Reaching the share p of the way from m to o means a time of at most
//   o + (m - o)(1 - p). With i times worse than that, random search takes
//   ceil(i / (N + 1 - i)) evaluations; times the median cost of one, that is
//   t(p). Curves are compared at 1,000 times from t(0.01) to t(0.95).
// - Baseline: after M evaluations random search is expected at element
//   round(M (N + 1) / (M + 1)) of the list (from 1); an evaluation costs the
//   mean of the valid ones plus the invalid share times the mean of the others.
// - Strategy: the rank of the best time so far, averaged over repeats and
//   mapped back to a time; before its first result, the worst.
// - Score: mean of (baseline - strategy) / (baseline - o); 0 is random search,
//   1 is the optimum at once.
// Costs are the recorded compile + benchmark + framework times; the strategy's
// own time, a thousandth of them, is reported apart.

#include "bench/measure/Summary.h"
#include "tuner/space/RecordedSpace.h"

#include <functional>
#include <memory>

namespace mgpu::tuner {
class SearchStrategy;
}

namespace mgpu::bench {

inline constexpr size_t numScoreTimes = 1000;

/// The yardstick of one space.
class SearchYardstick {
public:
  /// Invalid when fewer than 10 points are valid or all are equally fast.
  static Result<SearchYardstick> make(const tuner::RecordedSpace &recorded);

  /// t(0.95) in evaluations of median cost. Under 20, a score means little.
  double windowEvaluations() const { return windowEnd / medianCost; }
  double timeAt(size_t k) const {
    return windowStart +
           (windowEnd - windowStart) * double(k) / double(numScoreTimes - 1);
  }
  /// Rank of a valid point, 0 for the slowest.
  uint32_t rank(tuner::ConfigId id) const { return ranks[id]; }
  /// From the mean rank at each time.
  double score(std::span<const double> meanRanks) const;

private:
  std::vector<double> slowestFirst;
  std::vector<uint32_t> ranks; ///< by ConfigId
  std::vector<double> baseline;
  double windowStart = 0, windowEnd = 0, medianCost = 0;
};

/// One run: the rank of the best so far at each of the times.
struct SearchRun {
  std::vector<uint32_t> ranks;
  uint64_t evaluations = 0;
  double ownSeconds = 0; ///< processor time of the strategy itself
};
SearchRun runSearch(const tuner::RecordedSpace &recorded,
                    const SearchYardstick &yardstick,
                    tuner::SearchStrategy &strategy);

/// Mean score over spaces ([space][repeat]) with the 95 % interval of 1,000
/// bootstrap samples of the repeats, deterministic by `seed`.
Interval aggregateScore(std::span<const SearchYardstick *const> yardsticks,
                        std::span<const std::vector<SearchRun>> runs,
                        uint64_t seed);

/// Mean rank at each time over the chosen repeats.
std::vector<double> meanRanks(std::span<const SearchRun> runs,
                              std::span<const uint32_t> chosen);

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_SEARCHSCORE_H
