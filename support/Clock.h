// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_CLOCK_H
#define MGPU_SUPPORT_CLOCK_H

// Time that has passed, and the time of day.

#include <chrono>
#include <cstdint>

namespace mgpu {

/// For durations: it never goes back.
using Clock = std::chrono::steady_clock;

/// Seconds from `start` to now.
inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Microseconds from `start` to now.
inline double microsecondsSince(Clock::time_point start) {
  return 1e6 * secondsSince(start);
}

/// A moment after which nothing of a piece of work waits any more.
struct TimeLimit {
  Clock::time_point until = Clock::time_point::max();
  bool isOver() const { return Clock::now() >= until; }
  /// At most `seconds`, and no more than are left.
  double atMost(double seconds) const {
    if (until == Clock::time_point::max())
      return seconds;
    const double left = -secondsSince(until);
    return left < 0 ? 0 : left < seconds ? left : seconds;
  }
};

/// At most `seconds`, and no more than `limit` leaves; null: no limit.
inline double atMost(const TimeLimit *limit, double seconds) {
  return limit ? limit->atMost(seconds) : seconds;
}

/// Milliseconds of the system's time of day since 1970, UTC.
inline int64_t unixMilliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch())
      .count();
}

} // namespace mgpu

#endif // MGPU_SUPPORT_CLOCK_H
