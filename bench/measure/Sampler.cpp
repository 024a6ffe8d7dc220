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

Result<void> Sampler::warmUp() {
  MGPU_TRY(prepare());
  const Clock::time_point start = Clock::now();
  double fastest = 0;
  uint64_t count = 0;
  do {
    Clock::time_point before = Clock::now();
    MGPU_TRY(run());
    double seconds = secondsSince(before);
    fastest = count == 0 ? seconds : std::min(fastest, seconds);
    ++count;
  } while (secondsSince(start) < options.warmUpSeconds);
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
      Clock::time_point start = Clock::now();
      MGPU_TRY(run());
      sample.seconds += secondsSince(start) / double(runs);
    }
    sample.disturbance = watch.end();
    return sample;
  }
  MGPU_TRY(run()); // what prepare() displaced from the caches comes back
  watch.begin();
  Clock::time_point start = Clock::now();
  for (uint64_t k = 0; k < runsPerSample; ++k)
    MGPU_TRY(run());
  sample.seconds = secondsSince(start) / double(runsPerSample);
  sample.disturbance = watch.end();
  return sample;
}

} // namespace mgpu::bench
