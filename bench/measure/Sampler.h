// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_SAMPLER_H
#define MGPU_BENCH_MEASURE_SAMPLER_H

// Takes samples of something that can be run again and again.

#include "device/api/MessageRendezvous.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mgpu::bench {

// Counts how the machine disturbed a sample while it was taken.

struct Disturbance {
  /// Time of a fixed run of dependent arithmetic just before and just after
  /// (the slower of the two) over the best this process has seen: above 1 the
  /// clock is lower, or a neighbour takes part of the core.
  double slowdown = 1;
  uint64_t stolenTicks = 0; ///< of the hypervisor, whole machine (/proc/stat)
  uint64_t preemptions = 0; ///< times this process was put aside
  bool operator==(const Disturbance &) const = default;
};

struct DisturbanceLimits {
  /// nvbench discards below 75 % of the default clock; a spin of some
  /// microseconds is less exact than a cycle counter, so a little more.
  double slowdown = 1.25;
};

/// Whether a sample taken under it says something of the sample.
inline bool isDisturbed(const Disturbance &found,
                        const DisturbanceLimits &limits = {}) {
  return found.slowdown > limits.slowdown || found.stolenTicks > 0 ||
         found.preemptions > 0;
}

/// "clock at 71 %, 2 preemptions"; empty where there was nothing.
std::string describe(const Disturbance &found);

/// Watches one sample at a time: begin(), the work, end(). Costs about 60 us
/// around the work and nothing within it.
class DisturbanceWatch {
public:
  DisturbanceWatch(); ///< calibrates for about a millisecond
  void begin();
  Disturbance end();

private:
  double spin();

  double bestSpin;
  double spinBefore = 0;
  uint64_t stolenBefore = 0, preemptionsBefore = 0;
};

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
