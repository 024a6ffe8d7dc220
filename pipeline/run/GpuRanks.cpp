// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/GpuRanks.h"

#include "pipeline/build/OwnKernels.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

RanksToOpen ranksToOpen(const std::vector<int> &gpus, uint32_t first,
                        const device::NcclOptions &nccl,
                        std::chrono::milliseconds deadline,
                        device::CudaCompile compile) {
  RanksToOpen out;
  out.how.deadline = deadline;
  for (int gpu : gpus)
    out.how.names.push_back(fmt::format("cuda:{}", gpu));
  out.open = [gpus, first, nccl, deadline, compile = std::move(compile)](
                 uint32_t rank, std::function<Result<void>()> watch) {
    return openRank(gpus[rank], first + rank, deadline, nccl, std::move(watch),
                    compile);
  };
  return out;
}

Result<RanksToOpen> GpuRanks::opening(const std::string &nccl) const {
  MGPU_TRY_ASSIGN(const device::NcclOptions settings, parseNccl(nccl));
  return ranksToOpen(here.gpus, here.part.first, settings, deadline, compile);
}

Result<GpuRanks> gpuRanksOf(const LoadedProgram &program,
                            std::chrono::milliseconds deadline) {
  MGPU_TRY_ASSIGN(
      RankGpus here,
      gpusOfRank(program.from.target, program.dag.numDevices, *theRanks()));
  capture::OwnCubins own;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(own, program.bundle->ownCubins());
  }
  std::optional<std::string> database; // rank 0 alone writes it
  if (isFirstRank())
    database = program.from.database;
  return GpuRanks{std::move(here), deadline,
                  ownCompiler(std::move(database), std::move(own))};
}

Result<std::unique_ptr<Runner>> openOnGpus(const planner::Dag &dag,
                                           const planner::Plan &plan,
                                           const std::vector<Bytes> &kernels,
                                           const GpuRanks &gpus,
                                           const std::string &nccl) {
  MGPU_TRY_ASSIGN(RanksToOpen opening, gpus.opening(nccl));
  return capture::runGpusWithOthers(dag, plan, kernels, gpus.here.part,
                                    std::move(opening.open),
                                    std::move(opening.how));
}

} // namespace mgpu::pipeline
