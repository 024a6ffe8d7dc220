// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_OPENDRIVER_H
#define MGPU_DEVICE_CUDA_OPENDRIVER_H

// CudaDriver.h over a table of entry points from elsewhere.

#include "device/cuda/CudaApi.h"
#include "device/cuda/CudaDriver.h"

namespace mgpu::device {

/// `api` is initialised (initializeCuda).
Result<std::unique_ptr<Driver>>
createCudaDriver(std::shared_ptr<const CudaApi> api,
                 const CudaOptions &options);
Result<CudaMachine> inspectCuda(const CudaApi &api);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_OPENDRIVER_H
