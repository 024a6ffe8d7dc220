// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUDATARGET_H
#define MGPU_DEVICE_CUDA_CUDATARGET_H

// GPUs by the name a user gives them. Built with and without CUDA's headers.

#include "device/cuda/CudaDriver.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::device {

/// "cuda", "cuda:0", "cuda:0,1" or "cuda:0/4".
struct CudaTarget {
  std::vector<int> gpus{0};
  uint32_t devicesOnGpu = 1;
};
/// Usage for an unknown form.
Result<CudaTarget> parseCudaTarget(const std::string &target);

/// Whether the target is of the form of a GPU's, well formed or not.
bool isCudaTarget(const std::string &target);

/// The GPUs of a target that is several of them, one for each device of a
/// program with so many; none: oneGpu() is what it has. Errors: Usage, and
/// Absent for too few.
Result<std::optional<std::vector<int>>> severalGpus(const std::string &target,
                                                    uint32_t numDevices);
/// The first GPU of a target; Absent where it is not as many devices as the
/// program has.
Result<CudaTarget> oneGpu(const std::string &target, uint32_t numDevices);

/// The architecture of these GPUs, as the driver says: "sm_90". Errors: those
/// of the driver; Absent where there is no such GPU, or no NCCL, or the GPUs
/// are of several architectures.
Result<std::string> architectureOf(const std::vector<int> &gpus);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUDATARGET_H
