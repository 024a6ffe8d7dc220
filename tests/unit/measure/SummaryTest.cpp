// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Environment.h"
#include "bench/measure/Race.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace mgpu::bench {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  const std::vector<double> four = {1, 2, 4, 8};
  EXPECT_EQ(quantile(four, 0), 1);
  EXPECT_EQ(quantile(four, 1), 8);
  EXPECT_EQ(quantile(four, 0.5), 3);
  EXPECT_EQ(quantile(four, 1.0 / 3), 2);
  EXPECT_EQ(quantile(std::vector<double>{7}, 0.9), 7);
  EXPECT_EQ(median({8, 1, 4, 2}), 3);
  EXPECT_EQ(median({8, 1, 4}), 4);
}

std::vector<double> counting(size_t n) {
  std::vector<double> samples(n);
  std::iota(samples.begin(), samples.end(), 1);
  return samples;
}

TEST(MedianInterval, OfFewSamplesIsInfinite) {
  for (size_t n = 0; n < 6; ++n) {
    Interval interval = medianInterval(counting(n));
    EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high)) << n;
  }
  EXPECT_TRUE(std::isfinite(medianInterval(counting(6)).low));
}

TEST(MedianInterval, AgreesWithTheBinomialTable) {
  // With 10 samples [x(2), x(9)] covers 97.85 %, [x(3), x(8)] 89.06 % (any
  // table of the sign test).
  Interval wide = medianInterval(counting(10), 0.9785);
  EXPECT_NEAR(wide.low, 2, 0.01);
  EXPECT_NEAR(wide.high, 9, 0.01);
  Interval narrow = medianInterval(counting(10), 0.8906);
  EXPECT_NEAR(narrow.low, 3, 0.01);
  EXPECT_NEAR(narrow.high, 8, 0.01);
  Interval between = medianInterval(counting(10), 0.95);
  EXPECT_GT(between.low, 2);
  EXPECT_LT(between.low, 3);
  EXPECT_NEAR(between.low + between.high, 11, 1e-9);
}

TEST(MedianInterval, OfManySamplesDoesNotUnderflow) {
  // Half-width of the normal approximation: 1.96 sqrt(n) / 2 ranks.
  Interval interval = medianInterval(counting(100'000));
  EXPECT_NEAR(interval.halfWidth(), 1.96 * std::sqrt(100'000.0) / 2, 2);
}

TEST(StoppingCriterion, StopsWhenPreciseAndNotBefore) {
  StoppingOptions options;
  options.maxSeconds = 100;
  std::vector<double> samples;
  StoppingCriterion exact(options);
  for (size_t k = 1; k < options.minSamples; ++k) {
    samples.push_back(1);
    EXPECT_EQ(exact.check(samples, 0), Stop::No);
  }
  samples.push_back(1);
  EXPECT_EQ(exact.check(samples, 0), Stop::Precise);

  samples.clear();
  StoppingCriterion noisy(options);
  Stop stop = Stop::No;
  while (stop == Stop::No) {
    samples.push_back(samples.size() % 2 ? 1 : 2);
    stop = noisy.check(samples, 0);
  }
  EXPECT_EQ(stop, Stop::Samples);
  EXPECT_EQ(samples.size(), options.maxSamples);
  EXPECT_EQ(StoppingCriterion(options).check(std::vector<double>{1, 2}, 101),
            Stop::Time);
}

TEST(Environment, SaysWhatItRunsOn) {
  Environment environment = readEnvironment();
  EXPECT_FALSE(environment.cpu.empty());
  EXPECT_GE(environment.cores, 1u);
  EXPECT_GT(environment.memoryBytes, uint64_t(1) << 20);
  for (const auto &[name, value] : environment.entries())
    EXPECT_FALSE(name.empty() || value.empty()) << name;
  EXPECT_EQ(environment.entries(true).size() + 1, environment.entries().size());
}

} // namespace
} // namespace mgpu::bench
