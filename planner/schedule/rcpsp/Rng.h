// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_RCPSP_RNG_H
#define MGPU_PLANNER_SCHEDULE_RCPSP_RNG_H

#include <cstdint>

namespace mgpu::planner::rcpsp {

/// SplitMix64 (Steele, Lea and Flood 2014). The standard library's
/// distributions differ between implementations; plans must not.
class Rng {
public:
  explicit Rng(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From 0 to bound - 1; bound > 0. The bias of 2^-32 does not matter here.
  uint32_t below(uint32_t bound) {
    return uint32_t(((next() >> 32) * bound) >> 32);
  }
  /// From 0 to below 1.
  double unit() { return double(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace mgpu::planner::rcpsp

#endif // MGPU_PLANNER_SCHEDULE_RCPSP_RNG_H
