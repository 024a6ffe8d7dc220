// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUDAAPI_H
#define MGPU_DEVICE_CUDA_API_CUDAAPI_H

// The entry points of the NVIDIA driver that the CUDA target calls, as a table:
// taken from libcuda at run time, replaced by a double in tests. The driver API
// and not the runtime's (docs/decisions.md says why).

#include "support/Result.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <memory>
#include <string>

namespace mgpu::device {

/// X(name, version): the function and the CUDA version of its present form, as
/// cudaTypedefs.h spells it. The newest, 12.4, decides the oldest driver.
#define MGPU_CUDA_REQUIRED(X)                                                  \
  X(cuInit, 2000)                                                              \
  X(cuDriverGetVersion, 2020)                                                  \
  X(cuGetErrorName, 6000)                                                      \
  X(cuGetErrorString, 6000)                                                    \
  X(cuDeviceGetCount, 2000)                                                    \
  X(cuDeviceGet, 2000)                                                         \
  X(cuDeviceGetName, 2000)                                                     \
  X(cuDeviceGetUuid, 11040)                                                    \
  X(cuDeviceGetAttribute, 2000)                                                \
  X(cuDeviceTotalMem, 3020)                                                    \
  X(cuDeviceCanAccessPeer, 4000)                                               \
  X(cuDevicePrimaryCtxRetain, 7000)                                            \
  X(cuDevicePrimaryCtxRelease, 11000)                                          \
  X(cuCtxGetCurrent, 4000)                                                     \
  X(cuCtxPushCurrent, 4000)                                                    \
  X(cuCtxPopCurrent, 4000)                                                     \
  X(cuCtxGetStreamPriorityRange, 5050)                                         \
  X(cuMemAlloc, 3020)                                                          \
  X(cuMemFree, 3020)                                                           \
  X(cuMemHostAlloc, 2020)                                                      \
  X(cuMemFreeHost, 2000)                                                       \
  X(cuMemHostRegister, 6050)                                                   \
  X(cuMemHostUnregister, 4000)                                                 \
  X(cuMemGetInfo, 3020)                                                        \
  X(cuMemsetD8Async, 3020)                                                     \
  X(cuMemcpyAsync, 4000)                                                       \
  X(cuPointerGetAttribute, 4000)                                               \
  X(cuLibraryLoadData, 12000)                                                  \
  X(cuLibraryUnload, 12000)                                                    \
  X(cuLibraryGetKernel, 12000)                                                 \
  X(cuKernelGetFunction, 12000)                                                \
  X(cuKernelGetAttribute, 12000)                                               \
  X(cuKernelSetAttribute, 12000)                                               \
  X(cuKernelGetParamInfo, 12040)                                               \
  X(cuFuncLoad, 12040)                                                         \
  X(cuTensorMapEncodeTiled, 12000)                                             \
  X(cuStreamCreateWithPriority, 5050)                                          \
  X(cuStreamDestroy, 4000)                                                     \
  X(cuStreamQuery, 2000)                                                       \
  X(cuStreamSynchronize, 2000)                                                 \
  X(cuStreamWaitEvent, 3020)                                                   \
  X(cuStreamWriteValue32, 11070)                                               \
  X(cuStreamBeginCaptureToGraph, 12030)                                        \
  X(cuStreamGetCaptureInfo, 12030)                                             \
  X(cuStreamEndCapture, 10000)                                                 \
  X(cuStreamUpdateCaptureDependencies, 12030)                                  \
  X(cuThreadExchangeStreamCaptureMode, 10010)                                  \
  X(cuEventCreate, 2000)                                                       \
  X(cuEventDestroy, 4000)                                                      \
  X(cuEventRecord, 2000)                                                       \
  X(cuEventElapsedTime, 2000)                                                  \
  X(cuGraphCreate, 10000)                                                      \
  X(cuGraphDestroy, 10000)                                                     \
  X(cuGraphAddNode, 12030)                                                     \
  X(cuGraphKernelNodeSetAttribute, 11000)                                      \
  X(cuGraphGetNodes, 10000)                                                    \
  X(cuGraphGetEdges, 12030)                                                    \
  X(cuGraphNodeGetDependencies, 12030)                                         \
  X(cuGraphInstantiateWithParams, 12000)                                       \
  X(cuGraphExecNodeSetParams, 12020)                                           \
  X(cuGraphExecDestroy, 10000)                                                 \
  X(cuGraphLaunch, 10000)

/// Null where the driver is older.
#define MGPU_CUDA_OPTIONAL(X)                                                  \
  X(cuLogsRegisterCallback, 12090)                                             \
  X(cuLogsUnregisterCallback, 12090)

struct CudaApi {
#define MGPU_CUDA_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
  MGPU_CUDA_REQUIRED(MGPU_CUDA_MEMBER)
  MGPU_CUDA_OPTIONAL(MGPU_CUDA_MEMBER)
#undef MGPU_CUDA_MEMBER
  int driverVersion = 0; ///< 13000 for 13.0: the newest CUDA the driver knows
};

/// "13.0" of 13000.
std::string cudaVersionText(int version);

/// Opens the driver, which is never closed again, and initialises it. `path`
/// is for tests; else the loader finds libcuda.so.1. Absent, with what is
/// missing and what to do, where there is no driver, one too old, or no GPU.
Result<std::shared_ptr<const CudaApi>>
openCuda(const std::string &path = "libcuda.so.1");

/// The part of openCuda after the library is found: cuInit and the version.
/// For tables from elsewhere.
Result<void> initializeCuda(CudaApi &api);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUDAAPI_H
