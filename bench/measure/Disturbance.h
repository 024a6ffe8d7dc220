// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_DISTURBANCE_H
#define MGPU_BENCH_MEASURE_DISTURBANCE_H

// Counts how the machine disturbed a sample while it was taken.

#include <cstdint>
#include <string>

namespace mgpu::bench {

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

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_DISTURBANCE_H
