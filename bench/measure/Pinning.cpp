// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Pinning.h"

#include "support/Affinity.h"
#include "support/FileIO.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace mgpu::bench {

/// The name that all hardware threads of a core share; the CPU's own number
/// where the system does not say.
static std::string coreOf(int cpu) {
  auto text = readText(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list",
                  cpu),
      1 << 16);
  return text && !text->empty() ? *text : std::to_string(cpu);
}

std::vector<int> cpusInOrder() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return {};
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      allowed.push_back(cpu);
  // Two tuners at once are on different ones, as the system has put them.
  if (auto here = std::find(allowed.begin(), allowed.end(), sched_getcpu());
      here != allowed.end())
    std::rotate(allowed.begin(), here, allowed.end());
  std::vector<int> first, further;
  std::set<std::string> cores;
  for (int cpu : allowed)
    (cores.insert(coreOf(cpu)).second ? first : further).push_back(cpu);
  first.insert(first.end(), further.begin(), further.end());
  return first;
}

std::vector<int> cpusFor(const std::vector<int> &cpus, uint32_t threads) {
  if (cpus.size() < threads)
    return {};
  return {cpus.begin(), cpus.begin() + threads};
}

Result<std::vector<int>> cpusToPin(uint32_t threads) {
  const std::vector<int> all = cpusInOrder();
  std::vector<int> cpus = cpusFor(all, threads);
  if (cpus.empty())
    return fail(ErrorKind::Usage,
                fmt::format("pin: the program replays with {} and this process "
                            "may use {}: allow it more (taskset), take fewer "
                            "threads, or leave it out",
                            counted(threads, "thread"),
                            counted(all.size(), "CPU")));
  return cpus;
}

Result<void> pinForGood(int cpu) {
  if (pinThread(cpu))
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("pin: the system does not let this process stay on "
                          "CPU {} (sched_setaffinity): leave it out",
                          cpu));
}

PinnedThread::PinnedThread(int cpu) : before(pinThread(cpu)) {}

PinnedThread::~PinnedThread() {
  if (before)
    sched_setaffinity(0, sizeof(*before), &*before);
}

std::string cpusText(const std::vector<int> &cpus) {
  return cpus.empty() ? "none" : fmt::format("{}", fmt::join(cpus, ","));
}

} // namespace mgpu::bench
