// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_GPURANKS_H
#define MGPU_PIPELINE_RUN_GPURANKS_H

// GPUs that a command of ours opens, a process or a thread for each.

#include "pipeline/run/Distributed.h"

namespace mgpu::pipeline {

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

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_GPURANKS_H
