// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_SAMPLER_H
#define MGPU_BENCH_MEASURE_SAMPLER_H

// Takes samples of something that can be run again and again.

#include "bench/measure/Disturbance.h"
#include "device/api/Rendezvous.h"

#include <functional>
#include <vector>

namespace mgpu::bench {

enum class CacheMode : uint8_t {
  Hot,  ///< runs follow each other at once; a sample is many
  Cold, ///< the caches are overwritten before each run, outside the clock
};

struct SamplingOptions {
  CacheMode cache = CacheMode::Hot;
  /// The least time of one sample: a thousand times what the clock resolves,
  /// and short enough to fit between two turns of the system's scheduler.
  double sampleSeconds = 500e-6;
  uint64_t maxUnroll = 1 << 20;
  double warmUpSeconds = 5e-3;
  /// The processes that sample together: each makes the same calls, and all get
  /// the times of the slowest. Null: this one is alone.
  device::Rendezvous *others = nullptr;
};

struct Sample {
  double seconds = 0; ///< of one run
  Disturbance disturbance;
};

/// Times `run`. `prepare`, outside the clock and before each sample, puts back
/// what runs change (the inputs), so that every sample does the same work.
class Sampler {
public:
  using Action = std::function<Result<void>()>;
  /// Runs so often, and gives the seconds that took.
  using Runs = std::function<Result<double>(uint64_t count)>;

  Sampler(Action prepare, Action run, SamplingOptions options = {});
  /// The runs have a clock of their own for many of them together.
  Sampler(Action prepare, Runs runs, SamplingOptions options);
  /// Runs until warm and sets how many runs make a sample; sample() calls it
  /// when nobody has.
  Result<void> warmUp();
  Result<Sample> sample();
  uint64_t unroll() const { return runsPerSample; }

private:
  void coolCaches();
  Result<double> timedRun();
  Result<void> meet();
  Result<double> slowest(double seconds);
  Result<Disturbance> worst(const Disturbance &found);

  Action prepare;
  Runs runs;
  SamplingOptions options;
  DisturbanceWatch watch;
  uint64_t runsPerSample = 0;
  std::vector<uint64_t> sweep; ///< through the caches; when cold
};

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_SAMPLER_H
