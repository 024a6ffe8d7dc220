// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Race.h"

#include <chrono>
#include <gtest/gtest.h>

namespace mgpu::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Keeps the core busy for that long.
void work(double seconds) {
  Clock::time_point start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds)
    ;
}

TEST(Sampler, UnrollsWhatIsShort) {
  uint64_t runs = 0, prepared = 0;
  Sampler sampler(
      [&]() -> Result<void> {
        ++prepared;
        return {};
      },
      [&]() -> Result<void> {
        ++runs;
        work(2e-6);
        return {};
      });
  ASSERT_TRUE(sampler.warmUp());
  // How often depends on what else the machine does.
  EXPECT_GE(runs, 2u);
  EXPECT_GE(sampler.unroll(), 2u);
  EXPECT_LE(sampler.unroll(), 251u);
  uint64_t runsBefore = runs, preparedBefore = prepared;
  auto sample = sampler.sample();
  ASSERT_TRUE(sample);
  EXPECT_EQ(prepared, preparedBefore + 1);
  EXPECT_EQ(runs, runsBefore + sampler.unroll() + 1); // one comes first
  EXPECT_GE(sample->seconds, 2e-6);
}

TEST(Sampler, MeasuresWhatALongRunTakes) {
  Sampler sampler([]() -> Result<void> { return {}; },
                  []() -> Result<void> {
                    work(3e-3);
                    return {};
                  });
  StoppingOptions options;
  options.maxSamples = 8;
  auto result = measure([&] { return sampler.sample(); }, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(sampler.unroll(), 1u);
  EXPECT_GE(result->seconds.min, 3e-3);
  EXPECT_LT(result->seconds.min, 6e-3);
}

TEST(Sampler, ColdCachesAreSlower) {
  // 32 KiB read in one go: hot it lies in the first-level cache.
  std::vector<uint64_t> data(4096, 1);
  volatile uint64_t sum = 0;
  auto prepare = []() -> Result<void> { return {}; };
  auto run = [&]() -> Result<void> {
    uint64_t total = 0;
    for (size_t k = 0; k < data.size(); k += 8)
      total += data[k];
    sum = total;
    return {};
  };
  SamplingOptions cold;
  cold.cache = CacheMode::Cold;
  Sampler hotSampler(prepare, run), coldSampler(prepare, run, cold);
  std::vector<double> hotTimes, coldTimes;
  for (int k = 0; k < 3; ++k) {
    auto hotSample = hotSampler.sample(), coldSample = coldSampler.sample();
    ASSERT_TRUE(hotSample && coldSample);
    hotTimes.push_back(hotSample->seconds);
    coldTimes.push_back(coldSample->seconds);
  }
  EXPECT_GT(median(coldTimes), 1.5 * median(hotTimes));
}

TEST(Sampler, AnErrorOfTheWorkComesThrough) {
  Sampler sampler(
      []() -> Result<void> { return {}; },
      []() -> Result<void> { return fail(ErrorKind::Invalid, "broken"); });
  auto sample = sampler.sample();
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().message, "broken");
}

TEST(Disturbance, APauseOfTheProcessorShows) {
  DisturbanceWatch watch;
  watch.begin();
  EXPECT_GE(watch.end().slowdown, 1);
  Disturbance found{1.4, 2, 1};
  EXPECT_TRUE(isDisturbed(found));
  EXPECT_EQ(describe(found), "clock at 71 %, 2 ticks stolen, 1 preemption");
  EXPECT_FALSE(isDisturbed({}));
  EXPECT_EQ(describe(Disturbance{}), "");
}

} // namespace
} // namespace mgpu::bench
