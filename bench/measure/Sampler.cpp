// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Sampler.h"

#include "support/Clock.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace mgpu::bench {

Sampler::Sampler(Action prepare, Action run, SamplingOptions options)
    : prepare(std::move(prepare)), run(std::move(run)), options(options) {}

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
  const Clock::time_point start = Clock::now();
  MGPU_TRY(run());
  return slowest(secondsSince(start));
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
  double runs = std::ceil(options.sampleSeconds / std::max(fastest, 1e-9));
  runsPerSample = uint64_t(std::clamp(runs, 1.0, double(options.maxUnroll)));
  return {};
}

Result<Sample> Sampler::sample() {
  if (runsPerSample == 0)
    MGPU_TRY(warmUp());
  MGPU_TRY(prepare());
  Sample sample;
  if (options.cache == CacheMode::Cold) {
    // Each run is timed alone; the sweeps between them are not.
    uint64_t runs = std::min<uint64_t>(runsPerSample, 5);
    watch.begin();
    for (uint64_t k = 0; k < runs; ++k) {
      coolCaches();
      MGPU_TRY_ASSIGN(const double seconds, timedRun());
      sample.seconds += seconds / double(runs);
    }
  } else {
    MGPU_TRY(run()); // what prepare() displaced from the caches comes back
    watch.begin();
    MGPU_TRY(meet());
    const Clock::time_point start = Clock::now();
    for (uint64_t k = 0; k < runsPerSample; ++k)
      MGPU_TRY(run());
    MGPU_TRY_ASSIGN(sample.seconds,
                    slowest(secondsSince(start) / double(runsPerSample)));
  }
  MGPU_TRY_ASSIGN(sample.disturbance, worst(watch.end()));
  return sample;
}

} // namespace mgpu::bench
