// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_ENVIRONMENT_H
#define MGPU_BENCH_MEASURE_ENVIRONMENT_H

// The machine a figure was measured on. A field that the system does not tell
// is empty, as in a virtual machine that hides its clock.

#include "support/Result.h"

#include <cstdint>
#include <optional>
#include <sched.h>
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

// Threads that stay where they are while they are measured.

/// The CPUs that the calling thread may use, in an order to give to threads:
/// the one it runs on first, then one of each other core, then the cores'
/// further hardware threads. Empty where the system does not say.
std::vector<int> cpusInOrder();

/// The first `threads` of `cpus`; none where there are fewer: threads that have
/// to share a CPU are left to the system.
std::vector<int> cpusFor(const std::vector<int> &cpus, uint32_t threads);

/// The CPUs of `run --pin`, which does not leave the choice to the system.
/// Absent where there are fewer.
Result<std::vector<int>> cpusToPin(uint32_t threads);

/// Keeps the calling thread, and those it starts from now on, on one CPU.
/// Absent where the system refuses.
Result<void> pinForGood(int cpu);

/// Keeps the calling thread on one CPU, and at its end lets it run again where
/// it might before. Ends on the thread that made it.
class PinnedThread {
public:
  /// A CPU that the thread may not use, or -1, leaves it as it is.
  explicit PinnedThread(int cpu);
  ~PinnedThread();
  PinnedThread(const PinnedThread &) = delete;
  PinnedThread &operator=(const PinnedThread &) = delete;
  bool isPinned() const { return before.has_value(); }

private:
  std::optional<cpu_set_t> before;
};

/// "0,2"; of none "none".
std::string cpusText(const std::vector<int> &cpus);

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_ENVIRONMENT_H
