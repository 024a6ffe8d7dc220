// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H
#define MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H

#include "pipeline/GpuRanks.h"
#include "tools/mgpu-tune/Options.h"

namespace mgpu::pipeline {

/// Meets the other processes where --distributed says that there are some.
/// Errors: those of joinRanks().
Result<void> joinAsked(const RankOptions &options);
/// Whether there are ranks, and their devices are GPUs.
bool haveGpus(const LoadOptions &load);
/// This rank's GPUs, once all agree on the program and on `more`.
Result<GpuRanks> agreedGpus(const LoadedProgram &program,
                            const RankOptions &options, device::Facts more);
/// Usage for --deadline where there is nothing to wait for.
Result<void> checkDeadline(const RankOptions &options, const LoadOptions &load);

} // namespace mgpu::pipeline

#endif // MGPU_TOOLS_MGPU_TUNE_JOINRANKS_H
