// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_GPU_GROWTH_H
#define MGPU_TESTS_GPU_GROWTH_H

#include <array>
#include <cstdint>

namespace mgpu::gpu {

/// What a process holds after a tenth of its replays, half of the rest later,
/// and at the end.
struct Growth {
  std::array<int64_t, 3> bytes{};

  std::array<int64_t, 2> halves() const {
    return {bytes[1] - bytes[0], bytes[2] - bytes[1]};
  }
  /// A leak grows in both halves. What is taken once, as a driver may whenever
  /// it likes, or was measured a few pages too low, does so in one.
  bool goesOn(int64_t slackBytes) const {
    return halves()[0] > slackBytes && halves()[1] > slackBytes;
  }
};

} // namespace mgpu::gpu

#endif // MGPU_TESTS_GPU_GROWTH_H
