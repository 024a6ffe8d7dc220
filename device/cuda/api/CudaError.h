// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUDAERROR_H
#define MGPU_DEVICE_CUDA_API_CUDAERROR_H

// Turns failures of CUDA into errors of ours.

#include "device/cuda/api/CudaApi.h"

#include <atomic>
#include <mutex>
#include <string_view>

namespace mgpu::device {

/// Collects the sentences that the driver logs when a call fails (since 12.9;
/// before, there are none).
class CudaLog {
public:
  explicit CudaLog(const CudaApi &api);
  ~CudaLog();
  CudaLog(const CudaLog &) = delete;
  CudaLog &operator=(const CudaLog &) = delete;
  /// The log since the last call.
  std::string take();

private:
  static void CUDA_CB record(void *self, CUlogLevel level, char *message,
                             size_t length);
  const CudaApi &api;
  CUlogsCallbackHandle handle = nullptr;
  /// Whether `text` has anything: taking nothing, as each poll for the end of a
  /// replay does, takes no lock.
  std::atomic<bool> hasText = false;
  std::mutex mutex;
  std::string text;
};

/// "cuMemAlloc on cuda:0: CUDA_ERROR_X (its words); what to do". The kind says
/// whose fault it is: Invalid for a kernel that faulted, Absent for a machine
/// that lacks something, Internal for calls that should not have been made.
tl::unexpected<Error> cudaError(const CudaApi &api, CUresult code,
                                std::string_view call, std::string_view where,
                                std::string_view logged = "");

/// Whether the context is lost: every later call would return the same code.
bool isSticky(CUresult code);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUDAERROR_H
