// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/ThreadedGpus.h"

#include "device/cuda/CudaDriver.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

Result<RanksToOpen> gpusInThreads(const std::vector<int> &gpus, uint32_t first,
                                  const device::NcclOptions &nccl,
                                  device::CudaCompile compile,
                                  std::chrono::milliseconds deadline) {
  MGPU_TRY(device::checkNcclMixing());
  RanksToOpen out;
  out.how.policy = capture::RankPolicy::Threads;
  if (deadline.count() > 0)
    out.how.deadline = deadline;
  for (int gpu : gpus)
    out.how.names.push_back(fmt::format("cuda:{}", gpu));
  out.open = [gpus, first, nccl, compile, deadline = out.how.deadline](
                 uint32_t rank, std::function<Result<void>()> watch) {
    device::CudaOptions how;
    how.gpu = gpus[rank];
    how.only = DeviceId{int32_t(first + rank)};
    how.deadline = deadline;
    how.nccl = nccl;
    how.watch = std::move(watch);
    how.compile = compile;
    return device::createCudaDriver(how);
  };
  return out;
}

} // namespace mgpu::pipeline
