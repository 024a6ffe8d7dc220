// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_KERNELFARM_H
#define MGPU_TUNER_SESSION_KERNELFARM_H

// Compiles kernels in worker processes, several at once, and keeps what it
// compiled. A configuration on which the compiler crashes or hangs costs that
// configuration.

#include "kernels/space/KernelSpace.h"
#include "tuner/session/Worker.h"

#include <map>
#include <memory>

namespace mgpu::tuner {

/// Builds kernel `kernel` (by KernelId) in one way. Called in a worker. What
/// `variant` is beside it, is the target's affair (TuningSubject::variantOf).
using BuildKernel = std::function<Result<Bytes>(
    uint32_t kernel, const planner::KernelConfig &, uint32_t variant)>;

using KernelObject = std::shared_ptr<const Bytes>;

class KernelFarm {
public:
  struct Job {
    uint32_t kernel;
    planner::KernelConfig config;
    uint32_t variant = 0;
    auto operator<=>(const Job &) const = default;
  };

  /// Starts the workers: before this process has threads.
  static Result<KernelFarm> start(BuildKernel build, uint32_t numWorkers,
                                  double secondsPerKernel = 30);
  /// Results in the order of the jobs. An Error is of the machine (no process
  /// could be started), a Fault of the job.
  Result<std::vector<Outcome<KernelObject>>> build(std::span<const Job> jobs);
  /// An object that was built elsewhere.
  void add(const Job &job, KernelObject object) {
    known.emplace(job, std::move(object));
  }
  uint64_t numCompiled() const { return compiled; }

private:
  KernelFarm(BuildKernel build, double seconds)
      : buildKernel(std::move(build)), secondsPerKernel(seconds) {}
  Result<Worker> startWorker() const;

  BuildKernel buildKernel;
  double secondsPerKernel;
  std::vector<Worker> workers;
  std::map<Job, Outcome<KernelObject>> known;
  uint64_t compiled = 0;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_KERNELFARM_H
