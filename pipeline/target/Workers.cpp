// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/Workers.h"

#include "device/host/CpuLevel.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/HostReplay.h"
#include "support/Affinity.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline {

Result<void> checkWorkers(uint32_t threads, const std::string &cpu,
                          const char *where) {
  if (threads > usableCores())
    return fail(ErrorKind::Usage,
                fmt::format("{}threads {}: this process may use {} (affinity "
                            "and control group)",
                            where, threads, counted(usableCores(), "CPU")));
  const auto levels = device::cpuLevels();
  if (!cpu.empty() && std::ranges::find(levels, cpu) == levels.end())
    return fail(ErrorKind::Usage,
                fmt::format("{}cpu {}: this processor does not run it; it runs "
                            "{}",
                            where, cpu, fmt::join(levels, ", ")));
  return {};
}

Result<void> checkWorkersOf(const std::string &target, uint32_t threads,
                            const std::string &cpu, bool pins) {
  if (device::isCudaTarget(target) && (threads > 0 || !cpu.empty() || pins))
    return fail(ErrorKind::Usage,
                "threads, cpu and pin are of the host: leave them out on GPUs");
  return checkWorkers(threads, cpu, "");
}

uint32_t threadsFor(const planner::Plan &plan, const planner::Dag &dag) {
  return planner::usefulThreads(plan, dag,
                                std::min(dag.numDevices, usableCores()));
}

} // namespace mgpu::pipeline
