// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_OPENRANKS_H
#define MGPU_TOOLS_MGPU_TUNE_OPENRANKS_H

#include "capture/ranks/Ranks.h"
#include "tools/mgpu-tune/Tuned.h"

namespace mgpu::tune {

/// The architecture of several GPUs: "sm_90". It is looked up in a process of
/// its own, because this one is to be forked. Errors: those of the driver;
/// Absent if NCCL is missing or the GPUs are of several architectures; with a
/// program, Unsupported as checkAcrossCards().
Result<std::string> architectureOf(const std::vector<int> &gpus);
Result<std::string> architectureOf(const Program &program,
                                   const std::vector<int> &gpus);

/// How to open a process for each GPU, as --deadline and --nccl say.
struct RanksToOpen {
  capture::RankJob::Open open;
  capture::Ranks::Options how;
};
/// Usage for these options. `own` are a bundle's.
Result<RanksToOpen> ranksToOpen(const std::vector<int> &gpus,
                                const Options &options,
                                capture::OwnCubins own = {});

Result<std::unique_ptr<capture::Runner>> openRanks(const Program &program,
                                                   const Prepared &prepared,
                                                   const std::vector<int> &gpus,
                                                   const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_OPENRANKS_H
