// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_JOINRANKS_H
#define MGPU_PIPELINE_RUN_JOINRANKS_H

#include "capture/ranks/Ranks.h"
#include "pipeline/run/Distributed.h"

namespace mgpu::pipeline {

// GPUs that a command of ours opens, a process or a thread for each.

/// The GPUs are those of the program's devices from `first` on. Processes of
/// ours alone: the environment is changed.
RanksToOpen ranksToOpen(const std::vector<int> &gpus, uint32_t first,
                        const device::NcclOptions &nccl,
                        std::chrono::milliseconds deadline,
                        device::CudaCompile compile);

/// The GPUs of this rank, of a program whose others are other ranks'.
struct GpuRanks {
  RankGpus here;
  std::chrono::milliseconds deadline;
  device::CudaCompile compile;
  std::string arch = {}; ///< what all agreed on; "": nothing yet

  /// Usage for what device::parseNccl() does not take.
  Result<RanksToOpen> opening(const std::string &nccl) const;
};
/// The GPUs that `program.from.target` says, before anything is agreed on.
/// Errors: gpusOfRank()'s.
Result<GpuRanks> gpuRanksOf(const LoadedProgram &program,
                            std::chrono::milliseconds deadline);

/// Opens a plan, whose workspaces are in both, on the GPUs of all ranks.
Result<std::unique_ptr<Runner>> openOnGpus(const planner::Dag &dag,
                                           const planner::Plan &plan,
                                           const std::vector<Bytes> &kernels,
                                           const GpuRanks &gpus,
                                           const std::string &nccl);

/// Options of several processes that run a command together.
struct RankOptions {
  std::string distributed; ///< "auto", "openmpi", "mpich", "tcp"; or none
  /// For each wait for another rank, and each replay on a GPU; 0: none.
  uint64_t deadlineSeconds = 120;
};

/// The same, and options of several GPUs.
struct GpuOptions : RankOptions {
  std::string nccl; ///< "overlap,max-ctas=8"
};

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

#endif // MGPU_PIPELINE_RUN_JOINRANKS_H
