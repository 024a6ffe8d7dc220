// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The promises of the statistics, on machines whose truth is known: intervals
// cover as often as they say, equals are seldom called unequal, and what
// differs is found.
#include "tests/unit/measure/Noise.h"
#include "bench/measure/Race.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace mgpu::bench {
namespace {

/// What a share of `trials` may be off by chance: 4 standard deviations.
double slack(double share, int trials) {
  return 4 * std::sqrt(share * (1 - share) / trials);
}

TEST(Noise, IntervalsOfTheMedianCoverIt) {
  constexpr int trials = 4000;
  for (NoiseKind kind :
       {NoiseKind::Normal, NoiseKind::HeavyTail, NoiseKind::Outliers})
    for (size_t n : {8, 21, 100}) {
      int covered = 0;
      for (int trial = 0; trial < trials; ++trial) {
        Noise noise(kind, uint64_t(trial) * 977 + n);
        std::vector<double> samples(n);
        for (double &sample : samples)
          sample = noise.sample(1);
        std::sort(samples.begin(), samples.end());
        Interval interval = medianInterval(samples);
        double truth = noise.medianFactor();
        covered += interval.low <= truth && truth <= interval.high;
      }
      double share = double(covered) / trials;
      EXPECT_GT(share, 0.95 - slack(0.95, trials)) << nameOf(kind) << " " << n;
      // Near nominal, not merely above it: a wide interval decides nothing.
      EXPECT_LT(share, 0.98) << nameOf(kind) << " " << n;
    }
}

TEST(Noise, AStopByPrecisionKeepsMostOfTheCoverage) {
  constexpr int trials = 3000;
  for (NoiseKind kind : {NoiseKind::Normal, NoiseKind::HeavyTail}) {
    int covered = 0;
    for (int trial = 0; trial < trials; ++trial) {
      Noise noise(kind, uint64_t(trial) + 5);
      StoppingOptions options;
      options.relativeError = 0.004;
      StoppingCriterion criterion(options);
      std::vector<double> samples;
      do
        samples.push_back(noise.sample(1));
      while (criterion.check(samples, 0) == Stop::No);
      Interval interval = summarize(samples).median;
      double truth = noise.medianFactor();
      covered += interval.low <= truth && truth <= interval.high;
    }
    // Stopping when the interval is narrow favours those too narrow.
    EXPECT_GT(double(covered) / trials, 0.90) << nameOf(kind);
  }
}

/// The verdict on A of `ratio` times B's time, pairs in random order.
Comparison decide(NoiseKind kind, double ratio, uint64_t seed, size_t most) {
  Noise noise(kind, seed);
  Random order(seed + 1);
  SequentialComparison comparison(most);
  while (!comparison.isDecided()) {
    double a, b;
    if (order.below(2)) {
      a = noise.sample(ratio);
      b = noise.sample(1);
    } else {
      b = noise.sample(1);
      a = noise.sample(ratio);
    }
    comparison.add(a, b);
  }
  return comparison.result();
}

TEST(Noise, EqualsAreSeldomCalledUnequal) {
  constexpr int trials = 2000;
  for (NoiseKind kind : allNoise) {
    int falseWinners = 0, ties = 0;
    for (int trial = 0; trial < trials; ++trial) {
      Verdict verdict = decide(kind, 1, uint64_t(trial) * 31 + 7, 256).verdict;
      falseWinners += verdict == Verdict::Fast || verdict == Verdict::Slow;
      ties += verdict == Verdict::Same;
    }
    EXPECT_LT(double(falseWinners) / trials, 0.05 + slack(0.05, trials))
        << nameOf(kind);
    EXPECT_GT(double(ties) / trials, 0.5) << nameOf(kind);
  }
}

TEST(Noise, ADifferenceIsFoundAndItsSizeCovered) {
  constexpr int trials = 500;
  for (NoiseKind kind : allNoise) {
    int fast = 0, slow = 0, covered = 0;
    for (int trial = 0; trial < trials; ++trial) {
      Comparison found = decide(kind, 0.95, uint64_t(trial) * 13 + 3, 256);
      fast += found.verdict == Verdict::Fast;
      slow += found.verdict == Verdict::Slow;
      covered += found.change.low <= -0.05 && -0.05 <= found.change.high;
    }
    EXPECT_GT(double(fast) / trials, 0.95) << nameOf(kind);
    EXPECT_LT(double(slow) / trials, 0.02) << nameOf(kind);
    EXPECT_GT(double(covered) / trials, 0.9) << nameOf(kind);
  }
}

TEST(Noise, PairsTakeDriftOutThatWouldHideTheDifference) {
  // A 2 % difference under a sag of 20 %: apart, the intervals overlap.
  Noise noise(NoiseKind::Drift, 3);
  std::vector<double> a, b;
  for (int k = 0; k < 200; ++k) {
    a.push_back(noise.sample(0.98));
    b.push_back(noise.sample(1));
  }
  Summary alone = summarize(a), other = summarize(b);
  EXPECT_GT(alone.median.high, other.median.low);
  Comparison found = compare(a, b);
  EXPECT_EQ(found.verdict, Verdict::Fast);
  EXPECT_NEAR(found.change.middle, -0.02, 0.005);
}

TEST(Comparison, VerdictsFollowTheInterval) {
  auto of = [](double ratio, double spread) {
    std::vector<double> a, b;
    for (int k = 0; k < 40; ++k) {
      a.push_back(ratio * (1 + spread * (k - 19.5) / 20));
      b.push_back(1);
    }
    return compare(a, b).verdict;
  };
  EXPECT_EQ(of(0.9, 0.01), Verdict::Fast);
  EXPECT_EQ(of(1.1, 0.01), Verdict::Slow);
  EXPECT_EQ(of(1.002, 0.001), Verdict::Same); // there, but too small
  EXPECT_EQ(of(1.0, 0.2), Verdict::Ambiguous);
  EXPECT_EQ(compare({}, {}).verdict, Verdict::Ambiguous);
}

TEST(Comparison, GoesOnUntilItIsPrecise) {
  ComparisonOptions precise;
  precise.precision = 0.002;
  for (double ratio : {0.9, 1.1}) {
    Noise noise(NoiseKind::Normal, 9), again(NoiseKind::Normal, 9);
    SequentialComparison quick(4096), slow(4096, precise);
    while (!quick.isDecided())
      quick.add(noise.sample(ratio), noise.sample(1));
    while (!slow.isDecided())
      slow.add(again.sample(ratio), again.sample(1));
    EXPECT_EQ(quick.result().verdict, slow.result().verdict);
    EXPECT_LT(quick.result().pairs, slow.result().pairs);
    EXPECT_LE(slow.result().change.halfWidth(), 0.002);
  }
}

TEST(Comparison, SaysItInWords) {
  Comparison found{Verdict::Fast, {-0.041, -0.047, -0.035}, 30};
  EXPECT_EQ(describe(found, "A", "B"), "A beats B by 4.1 % +- 0.6 % (FAST)");
  found = {Verdict::Same, {0.002, -0.003, 0.007}, 30};
  EXPECT_EQ(describe(found, "A", "B"), "A and B tie: +0.2 % +- 0.5 % (SAME)");
  EXPECT_EQ(describe(compare({}, {}), "A", "B"),
            "A and B cannot be told apart: +0.0 % (too few samples) (AMBG)");
}

} // namespace
} // namespace mgpu::bench
