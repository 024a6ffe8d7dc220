// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_OPENRANKS_H
#define MGPU_PIPELINE_RUN_OPENRANKS_H

// A program on several GPUs: a process for each.

#include "capture/ranks/Ranks.h"
#include "pipeline/run/JoinRanks.h"

namespace mgpu::pipeline {

/// How to open a process for each GPU, as --deadline and --nccl say. Usage for
/// these options. `own` are a bundle's kernels of the target. Without
/// `database` nothing is kept of what is compiled.
Result<RanksToOpen> ranksToOpen(const std::vector<int> &gpus,
                                const GpuOptions &options,
                                std::optional<std::string> database,
                                capture::OwnCubins own = {});

/// `program` and `prepared` must outlive it.
Result<std::unique_ptr<Runner>> openRanks(const LoadedProgram &program,
                                          const Prepared &prepared,
                                          const std::vector<int> &gpus,
                                          const GpuOptions &options);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_OPENRANKS_H
