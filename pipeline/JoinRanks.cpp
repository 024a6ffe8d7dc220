// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/JoinRanks.h"

#include "pipeline/Target.h"

namespace mgpu::pipeline {

Result<void> joinAsked(const RankOptions &options, const LoadOptions &load,
                       RemoteGpus gpus) {
  if (options.distributed.empty())
    return {};
  if (isCudaTarget(load.target) && gpus == RemoteGpus::Refused)
    return fail(ErrorKind::Unsupported,
                "GPUs of several processes are for run and replay: this "
                "command takes the host target with --distributed");
  return joinRanks({.how = options.distributed,
                    .deadline = std::chrono::seconds(options.deadlineSeconds)});
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
