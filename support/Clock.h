// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_CLOCK_H
#define MGPU_SUPPORT_CLOCK_H

#include <chrono>

namespace mgpu {

using Clock = std::chrono::steady_clock;

inline double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

} // namespace mgpu

#endif // MGPU_SUPPORT_CLOCK_H
