// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Race.h"
#include "tests/unit/measure/Noise.h"

#include <gtest/gtest.h>

namespace mgpu::bench {
namespace {

/// Subjects of these times on one machine.
std::vector<Subject> subjectsOf(Noise &noise, std::vector<double> times) {
  std::vector<Subject> subjects;
  for (double time : times)
    subjects.push_back([&noise, time]() -> Result<Sample> {
      return Sample{noise.sample(time), {}};
    });
  return subjects;
}

TEST(Race, TheFastestWinsAndTheSlowLeaveEarly) {
  for (NoiseKind kind : allNoise) {
    int right = 0;
    for (uint64_t trial = 0; trial < 100; ++trial) {
      Noise noise(kind, trial * 7 + 1);
      auto subjects = subjectsOf(noise, {1, 0.9, 1.05, 1.5});
      RaceOptions options;
      options.seed = trial;
      auto result = race(subjects, options);
      ASSERT_TRUE(result);
      right += result->winner == 1;
      EXPECT_EQ(result->seconds.size(), 4u);
      if (kind == NoiseKind::Normal) {
        ASSERT_TRUE(result->leftAt[3]);
        EXPECT_LE(*result->leftAt[3], 16u);
      }
    }
    EXPECT_GE(right, 97) << nameOf(kind);
  }
}

TEST(Race, EqualsEndInATie) {
  Noise noise(NoiseKind::Normal, 1);
  auto subjects = subjectsOf(noise, {1, 1, 1});
  RaceOptions options;
  options.comparison.margin = 0.02;
  auto result = race(subjects, options);
  ASSERT_TRUE(result);
  EXPECT_LT(result->rounds, options.mostRounds);
  EXPECT_TRUE(result->isDecided);
  options.maxSeconds = 0; // one round tells nothing
  result = race(subjects, options);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->isDecided);
  for (auto left : result->leftAt)
    EXPECT_FALSE(left);
}

TEST(Race, OneThatFailsLeavesAndIsNamed) {
  Noise noise(NoiseKind::Normal, 1);
  auto subjects = subjectsOf(noise, {1, 1.1});
  int calls = 0;
  subjects.push_back([&]() -> Result<Sample> {
    if (++calls == 5)
      return fail(ErrorKind::Invalid, "crashed");
    return Sample{0.5, {}};
  });
  std::string said;
  auto result = race(subjects, {}, [&](size_t subject, const Error &error) {
    said = std::to_string(subject) + " " + error.message;
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(said, "2 crashed");
  EXPECT_EQ(result->winner, 0u);
  EXPECT_EQ(calls, 5);
}

TEST(Race, IsAnErrorWhenAllFail) {
  Subject broken = []() -> Result<Sample> {
    return fail(ErrorKind::Invalid, "no");
  };
  std::vector<Subject> subjects = {broken, broken};
  EXPECT_FALSE(race(subjects, {}));
}

TEST(HeadToHead, DecidesAndSaysByHowMuch) {
  Noise noise(NoiseKind::HeavyTail, 4);
  auto subjects = subjectsOf(noise, {0.9, 1});
  auto result = headToHead(subjects[0], subjects[1]);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->comparison.verdict, Verdict::Fast);
  EXPECT_NEAR(result->comparison.change.middle, -0.1, 0.01);
  EXPECT_NEAR(result->b.median.middle, noise.medianFactor(), 0.01);
}

TEST(Measure, DiscardsDisturbedSamples) {
  int calls = 0;
  Subject subject = [&]() -> Result<Sample> {
    // A third of them beside a neighbour that doubles the time.
    if (++calls % 3 == 0)
      return Sample{2, {2.0, 0, 0}};
    return Sample{1, {}};
  };
  auto result = measure(subject);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->seconds.median.middle, 1);
  EXPECT_EQ(result->seconds.p95, 1);
  EXPECT_EQ(result->discarded, size_t(calls) / 3);
  EXPECT_FALSE(result->neverQuiet);
}

TEST(Measure, AMachineThatIsNeverQuietStillGivesAFigure) {
  int calls = 0;
  Subject subject = [&]() -> Result<Sample> {
    ++calls;
    return Sample{1, {1.0, 0, 3}};
  };
  auto result = measure(subject);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->neverQuiet);
  EXPECT_GE(result->seconds.count, 8u);
  EXPECT_LT(calls, 40);
}

} // namespace
} // namespace mgpu::bench
