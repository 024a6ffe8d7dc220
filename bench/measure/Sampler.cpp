// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Sampler.h"

#include "support/Clock.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace mgpu::bench {

/// The eighth figure of the line "cpu" (proc(5)); 0 where there is none.
static uint64_t readStolenTicks() {
  char text[512];
  int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0)
    return 0;
  text[size] = 0;
  unsigned long long stolen = 0;
  return sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) == 1
             ? stolen
             : 0;
}

static uint64_t readPreemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_nivcsw);
}

DisturbanceWatch::DisturbanceWatch()
    : bestSpin(std::numeric_limits<double>::infinity()) {
  for (int k = 0; k < 50; ++k)
    bestSpin = std::min(bestSpin, spin());
}

double DisturbanceWatch::spin() {
  Clock::time_point start = Clock::now();
  // A chain of multiplications: one core, no memory, no luck. About 20 us.
  uint64_t x = uint64_t(start.time_since_epoch().count()) | 1;
  for (int k = 0; k < 12000; ++k)
    x = x * 0x9e3779b97f4a7c15 + 1;
  volatile uint64_t keep = x;
  (void)keep;
  return secondsSince(start);
}

void DisturbanceWatch::begin() {
  stolenBefore = readStolenTicks();
  spinBefore = spin();
  bestSpin = std::min(bestSpin, spinBefore);
  preemptionsBefore = readPreemptions();
}

Disturbance DisturbanceWatch::end() {
  Disturbance found;
  found.preemptions = readPreemptions() - preemptionsBefore;
  double after = spin();
  bestSpin = std::min(bestSpin, after);
  found.slowdown = std::max(spinBefore, after) / bestSpin;
  uint64_t stolen = readStolenTicks();
  found.stolenTicks = stolen > stolenBefore ? stolen - stolenBefore : 0;
  return found;
}

std::string describe(const Disturbance &found) {
  std::string text;
  auto add = [&](std::string part) {
    text += (text.empty() ? "" : ", ") + std::move(part);
  };
  if (found.slowdown > DisturbanceLimits().slowdown)
    add(fmt::format("clock at {:.0f} %", 100 / found.slowdown));
  if (found.stolenTicks)
    add(fmt::format("{} ticks stolen", found.stolenTicks));
  if (found.preemptions)
    add(fmt::format("{} preemption{}", found.preemptions,
                    found.preemptions == 1 ? "" : "s"));
  return text;
}

static Sampler::Runs timed(Sampler::Action run) {
  return [run = std::move(run)](uint64_t count) -> Result<double> {
    const Clock::time_point start = Clock::now();
    for (uint64_t k = 0; k < count; ++k)
      MGPU_TRY(run());
    return secondsSince(start);
  };
}

Sampler::Sampler(Action prepare, Action run, SamplingOptions options)
    : Sampler(std::move(prepare), timed(std::move(run)), options) {}

Sampler::Sampler(Action prepare, Runs runs, SamplingOptions options)
    : prepare(std::move(prepare)), runs(std::move(runs)), options(options) {}

void Sampler::coolCaches() {
  if (sweep.empty()) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    // Where the system does not say, 32 MiB. A virtual machine names the whole
    // cache of its host, of which it has a part: at most 128 MiB are swept.
    uint64_t bytes = cache > 0 ? uint64_t(cache) : uint64_t(32) << 20;
    sweep.resize(std::min<uint64_t>(2 * bytes, uint64_t(128) << 20) / 8);
  }
  for (size_t k = 0; k < sweep.size(); k += 8)
    sweep[k] += k;
}

Result<void> Sampler::meet() {
  return options.others ? options.others->meet() : Result<void>();
}

Result<double> Sampler::slowest(double seconds) {
  if (!options.others)
    return seconds;
  return options.others->largest(seconds);
}

Result<Disturbance> Sampler::worst(const Disturbance &found) {
  Disturbance out = found;
  if (!options.others)
    return out;
  out.preemptions = 0; // who waits for another process steps aside for it
  Bytes mine;
  append(mine, found);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, options.others->exchange(mine));
  for (const Bytes &each : all) {
    const auto theirs = ByteReader(each).take<Disturbance>();
    out.slowdown = std::max(out.slowdown, theirs.slowdown);
    out.stolenTicks = std::max(out.stolenTicks, theirs.stolenTicks);
  }
  return out;
}

Result<double> Sampler::timedRun() {
  MGPU_TRY(meet());
  MGPU_TRY_ASSIGN(const double seconds, runs(1));
  return slowest(seconds);
}

Result<void> Sampler::warmUp() {
  MGPU_TRY(prepare());
  const Clock::time_point start = Clock::now();
  double fastest = 0, passed = 0;
  uint64_t count = 0;
  do {
    MGPU_TRY_ASSIGN(const double seconds, timedRun());
    fastest = count == 0 ? seconds : std::min(fastest, seconds);
    ++count;
    MGPU_TRY_ASSIGN(passed, slowest(secondsSince(start)));
  } while (passed < options.warmUpSeconds);
  const double enough =
      std::ceil(options.sampleSeconds / std::max(fastest, 1e-9));
  runsPerSample = uint64_t(std::clamp(enough, 1.0, double(options.maxUnroll)));
  return {};
}

Result<Sample> Sampler::sample() {
  if (runsPerSample == 0)
    MGPU_TRY(warmUp());
  MGPU_TRY(prepare());
  Sample sample;
  if (options.cache == CacheMode::Cold) {
    // Each run is timed alone; the sweeps between them are not.
    const uint64_t count = std::min<uint64_t>(runsPerSample, 5);
    watch.begin();
    for (uint64_t k = 0; k < count; ++k) {
      coolCaches();
      MGPU_TRY_ASSIGN(const double seconds, timedRun());
      sample.seconds += seconds / double(count);
    }
  } else {
    MGPU_TRY(runs(1)); // what prepare() displaced from the caches comes back
    watch.begin();
    MGPU_TRY(meet());
    MGPU_TRY_ASSIGN(const double seconds, runs(runsPerSample));
    MGPU_TRY_ASSIGN(sample.seconds, slowest(seconds / double(runsPerSample)));
  }
  MGPU_TRY_ASSIGN(sample.disturbance, worst(watch.end()));
  return sample;
}

} // namespace mgpu::bench
