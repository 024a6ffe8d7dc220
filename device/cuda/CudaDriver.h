// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUDADRIVER_H
#define MGPU_DEVICE_CUDA_CUDADRIVER_H

// The CUDA target: one NVIDIA GPU as one or several logical devices, whose plan
// is one CUDA graph. It needs libcuda at run time only. Built without CUDA's
// headers, every call here says so (NoCuda.cpp).

#include "device/cuda/api/CudaOptions.h"

namespace mgpu::device {

/// Opens the GPU. Errors: Usage for a number of devices that cannot be;
/// Absent, with what to do, for a driver or GPU that is not there.
Result<std::unique_ptr<Driver>> createCudaDriver(const CudaOptions &options);

/// The driver's facts about this machine, for `doctor` and `devices`. Reading
/// them creates no context.
struct CudaMachine {
  struct Gpu {
    std::string name, uuid, arch; ///< "NVIDIA H100", "GPU-...", "sm_90"
    uint64_t memoryBytes = 0;
    uint32_t multiprocessors = 0;
    /// The highest clocks, which the driver states; not those of now.
    uint32_t clockKhz = 0, memoryClockKhz = 0;
    uint32_t busBits = 0;      ///< width of the memory's bus
    std::string computeMode;   ///< "default", "prohibited", "exclusive"
    std::vector<bool> reaches; ///< by GPU: peer access is possible
  };
  std::string driver; ///< "13.0": the newest CUDA it knows
  bool logs = false;  ///< it explains its errors
  std::vector<Gpu> gpus;
};
Result<CudaMachine> inspectCuda();

/// Returns once what a stream of the caller's was given has ended; null is the
/// default stream of the context that is current, if one is. Unsupported where
/// the stream is being captured; Absent once so much time is over.
Result<void> awaitStream(void *stream, std::chrono::milliseconds deadline);

/// Whether this process has initialised CUDA. One that it forks may not use it.
bool hasOpenedCuda();

/// The version of the headers built with, "13.0"; empty: none.
std::string cudaHeaderVersion();

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUDADRIVER_H
