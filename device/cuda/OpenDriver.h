// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_OPENDRIVER_H
#define MGPU_DEVICE_CUDA_OPENDRIVER_H

// CudaDriver.h over a table of entry points from elsewhere.

#include "device/cuda/CudaDriver.h"
#include "device/cuda/api/CublasLtApi.h"
#include "device/cuda/api/CudaApi.h"
#include "device/cuda/api/CusparseApi.h"
#include "device/cuda/cupti/CuptiApi.h"
#include "device/cuda/nccl/NcclApi.h"

namespace mgpu::device {

/// The reason where nobody asked for times.
inline tl::unexpected<Error> noCupti() {
  return fail(ErrorKind::Absent, "it was not asked for");
}

/// `api` is initialised (initializeCuda). `nccl` is needed with options.only,
/// `openProducts` for matrix products by cuBLASLt, `openSparse` for those with
/// sparse matrices by cuSPARSE. `cupti` times the nodes of
/// graphs, or says why it does not.
Result<std::unique_ptr<Driver>>
createCudaDriver(std::shared_ptr<const CudaApi> api, const CudaOptions &options,
                 std::shared_ptr<const NcclApi> nccl = nullptr,
                 CublasLtOpener openProducts = nullptr,
                 Result<std::shared_ptr<const CuptiApi>> cupti = noCupti(),
                 CusparseOpener openSparse = nullptr);
Result<CudaMachine> inspectCuda(const CudaApi &api);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_OPENDRIVER_H
