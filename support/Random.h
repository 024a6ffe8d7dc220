// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_RANDOM_H
#define MGPU_SUPPORT_RANDOM_H

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every platform,
// which the standard distributions do not promise.

#include <cstdint>

namespace mgpu {

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform below `bound`, which is not 0 (Lemire 2019, without the rejection:
  /// the bias is under bound / 2^64).
  uint64_t below(uint64_t bound) {
    return uint64_t((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return double(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_RANDOM_H
