// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H
#define MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H

#include "pipeline/TheRanks.h"
#include "tools/mgpu-tune/Options.h"

namespace mgpu::pipeline {

/// Whether a command takes GPUs of several processes.
enum class RemoteGpus : uint8_t { Refused, Taken };

/// Meets the other processes where --distributed says that there are some.
/// Errors: Unsupported with GPUs that are refused; those of joinRanks().
Result<void> joinAsked(const RankOptions &options, const LoadOptions &load,
                       RemoteGpus gpus = RemoteGpus::Refused);
/// Usage for --deadline where there is nothing to wait for.
Result<void> checkDeadline(const RankOptions &options, const LoadOptions &load);

} // namespace mgpu::pipeline

#endif // MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H
