// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_THREADEDGPUS_H
#define MGPU_PIPELINE_C_THREADEDGPUS_H

#include "capture/ranks/Ranks.h"
#include "device/cuda/CudaDriver.h"

namespace mgpu::capture {

/// GPUs of this process, each to be opened in a thread.
struct ThreadedGpus {
  RankJob::Open open;
  Ranks::Options how;
};
/// `gpus` are those of the program's devices from `first` on. `deadline` is a
/// step's; 0: as it is without one. Usage where NCCL may not be used so.
Result<ThreadedGpus> gpusInThreads(const std::vector<int> &gpus, uint32_t first,
                                   const device::NcclOptions &nccl,
                                   device::CudaCompile compile,
                                   std::chrono::milliseconds deadline);

} // namespace mgpu::capture

#endif // MGPU_PIPELINE_C_THREADEDGPUS_H
