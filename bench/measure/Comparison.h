// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_COMPARISON_H
#define MGPU_BENCH_MEASURE_COMPARISON_H

// Which of two is faster, from pairs of samples taken one right after the
// other: what slows the machine for a while slows both, and their ratio stays.

#include "bench/measure/Summary.h"

#include <limits>
#include <string>
#include <string_view>

namespace mgpu::bench {

enum class Verdict {
  Fast,      ///< A is faster, by more than nothing
  Slow,      ///< A is slower
  Same,      ///< the difference, if there is one, is too small to matter
  Ambiguous, ///< the samples do not tell
};
std::string_view toString(Verdict verdict); ///< FAST, SLOW, SAME, AMBG

struct ComparisonOptions {
  double confidence = 0.95;
  /// A difference that does not matter, as a share of B's time.
  double margin = 0.01;
  /// A sequential comparison goes on after Fast and Slow until the interval is
  /// not wider than this to either side.
  double precision = std::numeric_limits<double>::infinity();
  bool slowIsEnough = false; ///< but Slow is, at once
};

/// `change` is A's time over B's, less one: -0.04 where A takes 4 % less. Same
/// where the interval lies within the margin; else Fast or Slow where it lies
/// to one side of zero; else Ambiguous. If the two are equal, one is called
/// faster with a chance of at most 1 - confidence.
struct Comparison {
  Verdict verdict = Verdict::Ambiguous;
  Interval change;
  size_t pairs = 0;
  size_t processes = 1; ///< A's that the pairs come from, and as many of B's
};
/// The verdict that an interval of the change gives.
Verdict verdictOf(const Interval &change, double margin);

/// Times of A and B, pair by pair, all positive and equally many.
Comparison compare(std::span<const double> a, std::span<const double> b,
                   const ComparisonOptions &options = {});

/// A comparison that goes on until it is decided: it looks only after 8, 16,
/// 32, ... pairs and when it is told to finish, and shares 1 - confidence among
/// the looks up to `mostPairs`, so that the chance above holds for the whole of
/// it.
class SequentialComparison {
public:
  SequentialComparison(size_t mostPairs, ComparisonOptions options = {});
  void add(double a, double b);
  /// One last look, where time is up before the next is due.
  void finish();
  /// Whether there is a verdict, or no more to hope for.
  bool isDecided() const { return decided; }
  const Comparison &result() const { return latest; }

private:
  void look();

  ComparisonOptions options;
  size_t mostPairs, nextLook;
  std::vector<double> a, b;
  Comparison latest;
  bool decided = false;
};

/// "A beats B by 4.1 % +- 0.6 % (FAST)", "A and B tie: 0.2 % +- 0.5 % (SAME)".
std::string describe(const Comparison &comparison, std::string_view a,
                     std::string_view b);

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_COMPARISON_H
