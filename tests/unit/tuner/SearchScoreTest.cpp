// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/SearchScore.h"

#include "tuner/strategy/SearchStrategy.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace mgpu;
using namespace mgpu::bench;

namespace {

/// `count` points of times 1, 2, ... and cost 1 each.
tuner::RecordedSpace ramp(uint32_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1.0);
  tuner::RecordedSpace recorded{
      "ramp", *tuner::ConfigSpace::generate({{"x", values, {}}}, {}), {}, {}};
  for (double value : values)
    recorded.timeMs.push_back(value);
  recorded.costMs.assign(count, 1.0);
  return recorded;
}

TEST(SearchScore, WindowFollowsTheDefinition) {
  // The median of 1..1001 is 501; 95 % of the way to 1 is 26. 975 points are
  // worse: ceil(975 / (1002 - 975)) = 37 evaluations.
  auto recorded = ramp(1001);
  auto yardstick = SearchYardstick::make(recorded);
  ASSERT_TRUE(yardstick);
  EXPECT_EQ(yardstick->windowEvaluations(), 37);
  EXPECT_EQ(yardstick->rank(0), 1000u);
  EXPECT_EQ(yardstick->rank(1000), 0u);
  // 1 % of the way: 496; 505 are worse: ceil(505 / 497) = 2.
  EXPECT_EQ(yardstick->timeAt(0), 2);
  EXPECT_DOUBLE_EQ(yardstick->timeAt(numScoreTimes - 1), 37);
}

TEST(SearchScore, OptimumAtOnceIsOneAndTheWorstIsNegative) {
  auto recorded = ramp(1001);
  auto yardstick = *SearchYardstick::make(recorded);
  EXPECT_DOUBLE_EQ(yardstick.score(std::vector<double>(numScoreTimes, 1000.0)),
                   1.0);
  EXPECT_LT(yardstick.score(std::vector<double>(numScoreTimes, 0.0)), -1.0);
}

TEST(SearchScore, RandomSearchScoresNearZeroAndExhaustiveFromTheWorstBelow) {
  auto recorded = ramp(2000);
  auto yardstick = *SearchYardstick::make(recorded);
  std::vector<std::vector<SearchRun>> runs(1);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto search = *tuner::makeStrategy("random", recorded.space, seed);
    runs[0].push_back(runSearch(recorded, yardstick, *search));
    EXPECT_GT(runs[0].back().evaluations, 30u);
  }
  const SearchYardstick *yardsticks[] = {&yardstick};
  Interval interval = aggregateScore(yardsticks, runs, 1);
  EXPECT_LE(interval.low, interval.middle);
  EXPECT_LE(interval.middle, interval.high);
  EXPECT_NEAR(interval.middle, 0, 0.25);
  EXPECT_LT(interval.high - interval.low, 0.5);
}

TEST(SearchScore, FailuresCostTime) {
  auto recorded = ramp(100);
  for (uint32_t k = 50; k < 100; ++k)
    recorded.timeMs[k] = std::nullopt;
  auto yardstick = SearchYardstick::make(recorded);
  ASSERT_TRUE(yardstick);
  EXPECT_FALSE(SearchYardstick::make(ramp(5)));
}

} // namespace
