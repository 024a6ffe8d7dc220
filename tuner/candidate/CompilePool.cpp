// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/CompilePool.h"

#include <algorithm>
#include <cstring>

namespace mgpu::tuner {

Result<ChildProcess> CompilePool::startProcess() const {
  return ChildProcess::start(
      [build =
           buildKernel](std::span<const std::byte> request) -> Outcome<Bytes> {
        Job job;
        if (request.size() != sizeof job)
          return fault(FaultKind::Refused, "was asked nothing");
        std::memcpy(&job, request.data(), sizeof job);
        auto object = build(job.kernel, job.config, job.variant);
        if (!object)
          return fault(FaultKind::Refused, object.error().message);
        return std::move(*object);
      });
}

Result<CompilePool> CompilePool::start(BuildKernel build, uint32_t numProcesses,
                                       double secondsPerKernel) {
  CompilePool pool(std::move(build), secondsPerKernel);
  for (uint32_t k = 0; k < std::max(numProcesses, 1u); ++k) {
    MGPU_TRY_ASSIGN(ChildProcess process, pool.startProcess());
    pool.processes.push_back(std::move(process));
  }
  return pool;
}

Result<std::vector<Outcome<KernelObject>>>
CompilePool::build(std::span<const Job> jobs) {
  std::vector<Job> missing;
  for (const Job &job : jobs)
    if (!known.contains(job))
      missing.push_back(job);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  auto seconds = [&] { return atMost(limit, secondsPerKernel); };
  auto isOver = [&] { return limit && limit->isOver(); };
  for (size_t first = 0; first < missing.size() && !isOver();
       first += processes.size()) {
    auto wave = std::span(missing).subspan(
        first, std::min(processes.size(), missing.size() - first));
    for (size_t k = 0; k < wave.size(); ++k)
      (void)processes[k].post(std::as_bytes(wave.subspan(k, 1)),
                              seconds()); // its fault comes with receive()
    for (size_t k = 0; k < wave.size(); ++k) {
      auto object = processes[k].receive(seconds());
      ++compiled;
      if (object) {
        known.emplace(wave[k], std::make_shared<Bytes>(std::move(*object)));
        continue;
      }
      object.error().what = "the compiler " + object.error().what;
      if (object.error().kind != FaultKind::Refused) {
        MGPU_TRY_ASSIGN(processes[k], startProcess());
      }
      if (object.error().kind == FaultKind::Refused || !isOver())
        known.emplace(wave[k], tl::make_unexpected(object.error()));
    }
  }
  std::vector<Outcome<KernelObject>> results;
  for (const Job &job : jobs) {
    auto at = known.find(job); // what was cut short may be asked for again
    results.push_back(at != known.end()
                          ? at->second
                          : fault(FaultKind::Hang,
                                  "the compiler was stopped, as time was up"));
  }
  return results;
}

} // namespace mgpu::tuner
