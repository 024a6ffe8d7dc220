// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_RACE_H
#define MGPU_BENCH_MEASURE_RACE_H

// Several against each other, by samples taken in turn.

#include "bench/measure/Sampler.h"
#include "bench/measure/Summary.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace mgpu::bench {

// Which of two is faster, from pairs of samples taken one right after the
// other: what slows the machine for a while slows both, and their ratio stays.

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

// When a measurement has enough samples.

struct StoppingOptions {
  size_t minSamples = 8, maxSamples = 200;
  /// Enough when the 95 % interval of the median reaches no farther than this
  /// share of it to either side.
  double relativeError = 0.01;
  double maxSeconds = 1;
};

enum class Stop : uint8_t { No, Precise, Samples, Time };

/// Asked after each sample. Looks at the interval only at counts a quarter
/// apart: a stop chosen among all counts would pick those whose interval
/// happens to be too narrow.
class StoppingCriterion {
public:
  explicit StoppingCriterion(StoppingOptions options)
      : options(options), nextLook(options.minSamples) {}
  Stop check(std::span<const double> samples, double seconds);

private:
  StoppingOptions options;
  size_t nextLook;
};

/// Something that gives a sample when asked, in this process or another.
using Subject = std::function<Result<Sample>()>;

/// Disturbed samples are discarded, until that would leave too little: a
/// machine that is never quiet must not make a measurement endless or empty.
struct DiscardOptions {
  DisturbanceLimits limits;
  double mostDiscarded = 0.5; ///< share of all samples taken
};

/// Samples of one subject until the criterion is met.
struct Measurement {
  Summary seconds;
  size_t discarded = 0;
  bool neverQuiet = false; ///< the cap on discards was reached
  Stop stop = Stop::No;
};
Result<Measurement> measure(const Subject &subject,
                            const StoppingOptions &stopping = {},
                            const DiscardOptions &discarding = {});

/// A against B: each pair in random order, a pair discarded whole.
struct HeadToHead {
  Comparison comparison;
  Summary a, b;                       ///< seconds
  std::vector<double> timesA, timesB; ///< the samples, pair by pair
  size_t discarded = 0;
};
struct HeadToHeadOptions {
  ComparisonOptions comparison;
  DiscardOptions discarding;
  size_t mostPairs = 256;
  double maxSeconds = 5;
  uint64_t seed = 1;
};
Result<HeadToHead> headToHead(const Subject &a, const Subject &b,
                              const HeadToHeadOptions &options = {});

/// Rounds in which every subject that can still win is sampled once, in random
/// order. One that is surely slower than the leader leaves. Ends when one is
/// left, when all that are left tie, after `maxSeconds`, or after `mostRounds`.
struct RaceOptions {
  ComparisonOptions comparison;
  DiscardOptions discarding;
  size_t mostRounds = 128;
  double maxSeconds = 5;
  uint64_t seed = 1;
};
struct RaceResult {
  /// The one of lowest median. That it was chosen by these samples makes them
  /// flatter it: what it is worth must be asked of new ones (headToHead).
  size_t winner = 0;
  /// Whether the winner is surely not slower than any other; else time was up.
  bool isDecided = false;
  std::vector<Summary> seconds;              ///< by subject
  std::vector<std::optional<size_t>> leftAt; ///< round, by subject
  size_t rounds = 0, discarded = 0;
};
/// An error of a subject (it crashed) ends its race, not the others': it is
/// told to `onFailure`. Invalid when none is left.
Result<RaceResult>
race(std::span<const Subject> subjects, const RaceOptions &options,
     const std::function<void(size_t, const Error &)> &onFailure = {});

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_RACE_H
