// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_ENVIRONMENT_H
#define MGPU_BENCH_MEASURE_ENVIRONMENT_H

// The machine a figure was measured on. A field that the system does not tell
// is empty, as in a virtual machine that hides its clock.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::bench {

struct Environment {
  std::string cpu;      ///< model name
  uint32_t cores = 0;   ///< this process may use
  std::string governor; ///< of the first core
  std::string turbo;    ///< "on", "off"
  std::string hugePages, kernel, hypervisor, compiler, build;
  std::string loadAverage; ///< one minute
  /// To which threads are pinned while they are measured ("0,1", "none"); known
  /// to who pins them, and read by nobody here.
  std::string pinnedCpus;
  uint64_t memoryBytes = 0, lastLevelCacheBytes = 0;

  /// Name and value of each, those unknown left out. `stableOnly` leaves out
  /// what changes while nothing was changed (the load, the CPUs).
  std::vector<std::pair<std::string, std::string>>
  entries(bool stableOnly = false) const;
};
Environment readEnvironment();

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_ENVIRONMENT_H
