// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/JoinRanks.h"

#include "pipeline/build/OwnKernels.h"
#include "pipeline/target/Target.h"

namespace mgpu::pipeline {

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
