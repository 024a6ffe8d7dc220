// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/OpenRanks.h"

#include "capture/graph/Cards.h"
#include "device/cuda/CudaTarget.h"
#include "tools/mgpu-tune/AskInProcess.h"
#include "tools/mgpu-tune/OwnKernels.h"
#include "tools/mgpu-tune/Target.h"

#include <fmt/format.h>

namespace mgpu::tune {

Result<std::string> architectureOf(const std::vector<int> &gpus) {
  return askInProcess([&] { return device::architectureOf(gpus); });
}

Result<std::string> architectureOf(const Program &program,
                                   const std::vector<int> &gpus) {
  MGPU_TRY(capture::checkAcrossCards(program.dag));
  return architectureOf(gpus);
}

Result<RanksToOpen> ranksToOpen(const std::vector<int> &gpus,
                                const Options &options,
                                capture::OwnCubins own) {
  RanksToOpen out;
  out.how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  for (int gpu : gpus)
    out.how.names.push_back(fmt::format("cuda:{}", gpu));
  MGPU_TRY_ASSIGN(const device::NcclOptions nccl, parseNccl(options.nccl));
  out.open = [gpus, nccl, deadline = out.how.deadline,
              compile = ownCompiler(options.database, std::move(own))](
                 uint32_t rank, std::function<Result<void>()> watch) {
    return openRank(gpus[rank], rank, deadline, nccl, std::move(watch),
                    compile);
  };
  return out;
}

Result<std::unique_ptr<capture::Runner>> openRanks(const Program &program,
                                                   const Prepared &prepared,
                                                   const std::vector<int> &gpus,
                                                   const Options &options) {
  capture::OwnCubins own;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(own, program.bundle->ownCubins());
  }
  MGPU_TRY_ASSIGN(RanksToOpen opening,
                  ranksToOpen(gpus, options, std::move(own)));
  MGPU_TRY_ASSIGN(auto ranks, capture::Ranks::start(program.dag, prepared.plan,
                                                    prepared.kernels,
                                                    std::move(opening.open),
                                                    std::move(opening.how)));
  return std::unique_ptr<capture::Runner>(std::move(ranks));
}

} // namespace mgpu::tune
