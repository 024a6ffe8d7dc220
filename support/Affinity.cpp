// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Affinity.h"

#include <algorithm>
#include <thread>

namespace mgpu {

uint32_t usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return uint32_t(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
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
