// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TUNE_GPUCANDIDATE_H
#define MGPU_PIPELINE_TUNE_GPUCANDIDATE_H

// A candidate on the GPUs of several ranks, which check and measure it
// together. All ranks make the same calls in the same order.

#include "bench/measure/Sampler.h"
#include "pipeline/run/GpuRanks.h"

namespace mgpu::pipeline {

class GpuCandidate {
public:
  /// All but `nccl` are referred to; the realization has its workspaces.
  GpuCandidate(const tuner::Realization &realization,
               const tuner::ProgramData &data, const GpuRanks &gpus,
               std::string nccl, bench::CacheMode cache)
      : realization(realization), data(data), gpus(gpus), nccl(std::move(nccl)),
        others(*gpus.here.part.others), cache(cache) {}

  /// Opens what is measured. Errors, here and below: what loses all ranks.
  Result<void> open();
  /// The fault is that of the first rank that has one, on all of them.
  Result<Outcome<Bytes>> answer(std::span<const std::byte> request);
  Result<void> close();

private:
  /// A plan on all GPUs, with guard zones around the memory of each or without.
  struct Opened {
    std::unique_ptr<capture::Runner> runner;
    capture::Ranks *ranks = nullptr; ///< those here
    std::shared_ptr<bool> arms;      ///< what Ranks::work() is to do
    bool hasRun = false;
  };
  Result<Opened> start(planner::Plan plan, bool isGuarded);
  Result<void> bind(Opened &on, uint64_t seed);
  Result<Outcome<Bytes>> run(Opened &on, uint64_t seed);
  Result<Outcome<Bytes>> runSpread(uint64_t seed);
  Result<Outcome<Bytes>> check(uint64_t seed, std::span<const std::byte> body);
  Result<Outcome<void>> agree(const Outcome<void> &mine);
  Result<Bytes> sample();
  Result<std::vector<bench::Spans>> timedReplays(double seconds);

  const tuner::Realization &realization;
  const tuner::ProgramData &data;
  const GpuRanks &gpus;
  const std::string nccl;
  device::MessageRendezvous &others;
  const bench::CacheMode cache;
  Opened timed;
  std::optional<bench::Sampler> sampler;
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_GPUCANDIDATE_H
