// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/JoinRanks.h"

#include "pipeline/build/Kernels.h"
#include "pipeline/target/Target.h"

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

Result<void> joinAsked(const RankOptions &options) {
  if (options.distributed.empty())
    return {};
  return joinRanks({.how = options.distributed,
                    .deadline = std::chrono::seconds(options.deadlineSeconds)});
}

bool haveGpus(const LoadOptions &load) {
  return theRanks() && isCudaTarget(load.target);
}

Result<GpuRanks> agreedGpus(const LoadedProgram &program,
                            const RankOptions &options, device::Facts more) {
  MGPU_TRY_ASSIGN(
      GpuRanks gpus,
      gpuRanksOf(program, std::chrono::seconds(options.deadlineSeconds)));
  MGPU_TRY_ASSIGN(gpus.arch,
                  agreeOnGpus(program.dag, gpus.here,
                              factsOf(program.from, std::move(more))));
  return gpus;
}

Result<void> checkDeadline(const RankOptions &options,
                           const LoadOptions &load) {
  if (!options.distributed.empty() || !load.given.contains("--deadline"))
    return {};
  return fail(ErrorKind::Usage,
              "--deadline is of waits for other ranks: use it with "
              "--distributed");
}

Result<RanksToOpen> ranksToOpen(const std::vector<int> &gpus,
                                const GpuOptions &options,
                                std::optional<std::string> database,
                                capture::OwnCubins own) {
  MGPU_TRY_ASSIGN(const device::NcclOptions nccl, parseNccl(options.nccl));
  return ranksToOpen(gpus, 0, nccl,
                     std::chrono::milliseconds(options.deadlineSeconds * 1000),
                     ownCompiler(std::move(database), std::move(own)));
}

Result<std::unique_ptr<Runner>> openRanks(const LoadedProgram &program,
                                          const Prepared &prepared,
                                          const std::vector<int> &gpus,
                                          const GpuOptions &options) {
  capture::OwnCubins own;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(own, program.bundle->ownCubins());
  }
  MGPU_TRY_ASSIGN(
      RanksToOpen opening,
      ranksToOpen(gpus, options, program.from.database, std::move(own)));
  MGPU_TRY_ASSIGN(auto ranks, capture::Ranks::start(program.dag, prepared.plan,
                                                    prepared.kernels,
                                                    std::move(opening.open),
                                                    std::move(opening.how)));
  return std::unique_ptr<Runner>(std::move(ranks));
}

} // namespace mgpu::pipeline
