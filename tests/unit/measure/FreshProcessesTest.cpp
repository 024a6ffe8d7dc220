// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/FreshProcesses.h"
#include "tests/unit/measure/Noise.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace mgpu::bench {
namespace {

/// Each process is slower or faster than the others by some percent, as long
/// as it lives.
StartSubject processesOf(Noise &noise, double time, double perProcess,
                         std::string *order = nullptr, char name = 'a') {
  return [=, &noise]() -> Result<Subject> {
    if (order)
      *order += name;
    const double own = time * std::exp(perProcess * noise.normal());
    return Subject([own, &noise]() -> Result<Sample> {
      return Sample{noise.sample(own), {}};
    });
  };
}

/// How often equals are told apart, of 200 meetings.
int wrongVerdicts(bool fresh, double perProcess) {
  int wrong = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    Noise noise(NoiseKind::Normal, trial * 13 + 1);
    FreshOptions options;
    options.meeting.mostPairs = 100;
    const StartSubject start = processesOf(noise, 1, perProcess);
    HeadToHead met = fresh ? *headToHeadFresh(start, start, options)
                           : *headToHead(*start(), *start(), options.meeting);
    wrong += met.comparison.verdict == Verdict::Fast ||
             met.comparison.verdict == Verdict::Slow;
  }
  return wrong;
}

TEST(FreshProcesses, WhatAProcessBringsAlongIsNotTakenForADifference) {
  EXPECT_GT(wrongVerdicts(false, 0.05), 100); // why there is more than one
  EXPECT_LE(wrongVerdicts(true, 0.05), 20);   // 5 % of 200, and some luck
}

TEST(FreshProcesses, ARealDifferenceIsFoundAndStartsAlternate) {
  Noise noise(NoiseKind::Normal, 1);
  std::string order;
  FreshOptions options;
  options.meeting.mostPairs = 100;
  auto met = headToHeadFresh(processesOf(noise, 0.8, 0.01, &order, 'a'),
                             processesOf(noise, 1, 0.01, &order, 'b'), options);
  ASSERT_TRUE(met);
  EXPECT_EQ(order, "abbaabbaab");
  EXPECT_EQ(met->comparison.verdict, Verdict::Fast);
  EXPECT_EQ(met->comparison.processes, 5u);
  EXPECT_NEAR(met->comparison.change.middle, -0.2, 0.02);
  EXPECT_EQ(met->a.count, met->timesA.size());
  EXPECT_NE(describe(met->comparison, "A", "B").find("over 5 processes"),
            std::string::npos);
}

TEST(FreshProcesses, AProcessThatFailsIsAnError) {
  Noise noise(NoiseKind::Normal, 1);
  int started = 0;
  StartSubject failing = [&]() -> Result<Subject> {
    if (++started == 3)
      return fail(ErrorKind::Invalid, "crashed");
    return processesOf(noise, 1, 0)();
  };
  auto met = headToHeadFresh(failing, processesOf(noise, 1, 0));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().message, "crashed");
}

TEST(FreshProcesses, SaysWhatWasWrongWithTheMachine) {
  Environment busy;
  busy.cores = 2;
  busy.loadAverage = "5.31";
  HeadToHead met;
  met.comparison.pairs = 40;
  Noise noise(NoiseKind::Normal, 1);
  for (int k = 0; k < 40; ++k) {
    met.timesA.push_back(noise.sample(k % 2 ? 1 : 1.5));
    met.timesB.push_back(noise.sample(1));
  }
  auto said = conditions(met, busy);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("load is 5.31 on 2 CPUs"), std::string::npos);
  EXPECT_NE(said[1].find("two groups"), std::string::npos);
  busy.loadAverage = "0.50";
  met.timesA = met.timesB;
  EXPECT_TRUE(conditions(met, busy).empty());
  met.discarded = 20;
  said = conditions(met, busy);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("20 of 60 pairs"), std::string::npos);
}

} // namespace
} // namespace mgpu::bench
