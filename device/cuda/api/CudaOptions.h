// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUDAOPTIONS_H
#define MGPU_DEVICE_CUDA_API_CUDAOPTIONS_H

// Options with which a CUDA target is opened.

#include "device/api/GraphDriver.h"
#include "device/cuda/api/NcclOptions.h"

#include <chrono>
#include <functional>

namespace mgpu::device {

/// Compiles a program of the target's own (DeviceKernels.h) to a cubin for
/// "sm_90". `name` is what messages call it.
using CudaCompile = std::function<Result<std::vector<std::byte>>(
    const std::string &source, const std::string &name,
    const std::string &arch)>;

/// The most logical devices of one GPU.
inline constexpr uint32_t maxDevicesOnGpu = 32;

struct CudaOptions {
  int gpu = 0;
  uint32_t numDevices = 1; ///< on that GPU, each with memory of its own
  /// For every replay; zero means none. After it the driver and its graphs
  /// answer with an error only, because CUDA has no way to stop a kernel.
  std::chrono::milliseconds deadline{120'000};
  CudaCompile compile;
  /// Times are wanted: those of CUPTI, if it is there and the GPU is alone.
  bool profiles = false;
  /// Set if other processes have the other devices of the program: the device
  /// that this GPU is. `numDevices` is then 1, and collectives are NCCL's.
  std::optional<DeviceId> only;
  NcclOptions nccl;
  /// Asked while a replay or another rank is waited for: an error ends the
  /// wait, and the target is lost.
  std::function<Result<void>()> watch;
  /// Told what the user should know and is not an error, each sentence once.
  std::function<void(const std::string &sentence)> warn;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUDAOPTIONS_H
