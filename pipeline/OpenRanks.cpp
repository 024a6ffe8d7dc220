// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/OpenRanks.h"

#include "pipeline/OwnKernels.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

Result<RanksToOpen> ranksToOpen(const std::vector<int> &gpus,
                                const GpuOptions &options,
                                std::optional<std::string> database,
                                capture::OwnCubins own, uint32_t first) {
  RanksToOpen out;
  out.how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  for (int gpu : gpus)
    out.how.names.push_back(fmt::format("cuda:{}", gpu));
  MGPU_TRY_ASSIGN(const device::NcclOptions nccl, parseNccl(options.nccl));
  out.open = [gpus, first, nccl, deadline = out.how.deadline,
              compile = ownCompiler(std::move(database), std::move(own))](
                 uint32_t rank, std::function<Result<void>()> watch) {
    return openRank(gpus[rank], first + rank, deadline, nccl, std::move(watch),
                    compile);
  };
  return out;
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
