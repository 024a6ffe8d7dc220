// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_THREADEDGPUS_H
#define MGPU_PIPELINE_C_THREADEDGPUS_H

#include "pipeline/run/Distributed.h"

namespace mgpu::pipeline {

/// How to open GPUs of this process, each in a thread; `gpus` are those of the
/// program's devices from `first` on. `deadline` is a step's; 0: as it is
/// without one. Usage where NCCL may not be used so.
Result<RanksToOpen> gpusInThreads(const std::vector<int> &gpus, uint32_t first,
                                  const device::NcclOptions &nccl,
                                  device::CudaCompile compile,
                                  std::chrono::milliseconds deadline);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_THREADEDGPUS_H
