// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_COMPILEPOOL_H
#define MGPU_TUNER_CANDIDATE_COMPILEPOOL_H

// Compiles kernels in several processes at once, and keeps what it
// compiled. A crash or hang of the compiler costs only the configuration it was
// given.

#include "kernels/space/KernelSpace.h"
#include "support/ChildProcess.h"
#include "support/Clock.h"
#include "tuner/record/Keys.h"

#include <map>
#include <memory>

namespace mgpu::tuner {

/// Builds kernel `kernel` (by KernelId) in one way. Called in another process.
/// The target decides what `variant` means (TuningSubject::variantOf).
using BuildKernel = std::function<Result<Bytes>(
    uint32_t kernel, const kernels::KernelConfig &, uint32_t variant)>;

class CompilePool {
public:
  struct Job {
    uint32_t kernel;
    kernels::KernelConfig config;
    uint32_t variant = 0;
    auto operator<=>(const Job &) const = default;
  };

  /// Starts the processes; call it before this process has threads.
  static Result<CompilePool> start(BuildKernel build, uint32_t numProcesses,
                                   double secondsPerKernel = 30);
  /// Results in the order of the jobs. An Error is of the machine (no process
  /// could be started), a Fault of the job.
  Result<std::vector<Outcome<KernelObject>>> build(std::span<const Job> jobs);
  /// An object that was built elsewhere.
  void add(const Job &job, KernelObject object) {
    known.emplace(job, std::move(object));
  }
  uint64_t numCompiled() const { return compiled; }
  /// Compilations are cut short by it, with a Fault that is not kept. Null: by
  /// none.
  void setLimit(const TimeLimit *until) { limit = until; }

private:
  CompilePool(BuildKernel build, double seconds)
      : buildKernel(std::move(build)), secondsPerKernel(seconds) {}
  Result<ChildProcess> startProcess() const;

  BuildKernel buildKernel;
  double secondsPerKernel;
  std::vector<ChildProcess> processes;
  std::map<Job, Outcome<KernelObject>> known;
  uint64_t compiled = 0;
  const TimeLimit *limit = nullptr;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_COMPILEPOOL_H
