// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Affinity.h"

#include <algorithm>
#include <fstream>
#include <thread>

namespace mgpu {

/// CPUs' worth of time that the control group gives, rounded up; many where it
/// sets no limit.
static uint32_t groupCores() {
  uint64_t quota = 0, period = 0;
  std::ifstream file("/sys/fs/cgroup/cpu.max"); // "max 100000" without a limit
  if (!(file >> quota >> period) || quota == 0 || period == 0)
    return UINT32_MAX;
  return uint32_t(std::min<uint64_t>((quota + period - 1) / period, 1 << 16));
}

uint32_t usableCores() {
  static const uint32_t most = groupCores();
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::clamp(uint32_t(CPU_COUNT(&set)), 1u, most);
  return std::clamp(std::thread::hardware_concurrency(), 1u, most);
}

std::optional<cpu_set_t> pinThread(int cpu) {
  cpu_set_t now, one;
  if (cpu < 0 || cpu >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof(now), &now) != 0 || !CPU_ISSET(cpu, &now))
    return std::nullopt;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0)
    return std::nullopt;
  return now;
}

} // namespace mgpu
