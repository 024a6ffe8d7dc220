// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/JoinRanks.h"

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

} // namespace mgpu::pipeline
