// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_MEASURE_NOISE_H
#define MGPU_TESTS_UNIT_MEASURE_NOISE_H

// Machines that are noisy in the ways machines are, and whose true time is
// known.

#include "support/Random.h"

#include <cmath>
#include <numbers>

namespace mgpu::bench {

enum class NoiseKind {
  Normal,    ///< 1 % either way
  HeavyTail, ///< one-sided, Pareto of index 1.5: no variance
  Outliers,  ///< a tenth of the samples take three times as long
  Drift,     ///< the clock sags by a fifth over 200 samples, and recovers
  Walk,      ///< the clock wanders at random
};
inline constexpr NoiseKind allNoise[] = {
    NoiseKind::Normal, NoiseKind::HeavyTail, NoiseKind::Outliers,
    NoiseKind::Drift, NoiseKind::Walk};
inline const char *nameOf(NoiseKind kind) {
  constexpr const char *names[] = {"normal", "heavy tail", "outliers", "drift",
                                   "walk"};
  return names[int(kind)];
}

class Noise {
public:
  Noise(NoiseKind kind, uint64_t seed) : kind(kind), random(seed) {}

  double normal() {
    double u = 1 - random.uniform(), v = random.uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
  /// The median of what a sample is multiplied by, for noise that stands still.
  double medianFactor() const {
    return kind == NoiseKind::HeavyTail
               ? 1 + 0.01 * (std::pow(0.5, -1 / 1.5) - 1)
               : 1;
  }
  /// The next sample of something that takes `seconds` on a quiet machine.
  double sample(double seconds) {
    ++count;
    switch (kind) {
    case NoiseKind::Normal:
      return seconds * (1 + 0.01 * normal());
    case NoiseKind::HeavyTail:
      return seconds *
             (1 + 0.01 * (std::pow(1 - random.uniform(), -1 / 1.5) - 1));
    case NoiseKind::Outliers:
      // Symmetric about the median, but for the tenth that is far off: put as
      // many below it as above.
      return seconds * (random.below(20) == 0   ? 3
                        : random.below(19) == 0 ? 0.9
                                                : 1 + 0.01 * normal());
    case NoiseKind::Drift:
      return seconds * (1 + 0.01 * normal()) *
             (1 +
              0.2 * std::abs(std::sin(double(count) / 200 * std::numbers::pi)));
    case NoiseKind::Walk:
      level += 0.01 * normal();
      return seconds * std::exp(level) * (1 + 0.01 * normal());
    }
    return seconds;
  }

private:
  NoiseKind kind;
  Random random;
  uint64_t count = 0;
  double level = 0;
};

} // namespace mgpu::bench

#endif // MGPU_TESTS_UNIT_MEASURE_NOISE_H
