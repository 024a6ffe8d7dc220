// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GPUCONTEXT_H
#define MGPU_DEVICE_CUDA_GPUCONTEXT_H

// Memory of a GPU for those who give it to programs (mgt_bind). Built with and
// without CUDA's headers.

#include "support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mgpu::device {

/// A GPU's primary context, with a stream for copies, which have ended when
/// their call returns. From any thread; the caller's current context stays.
/// Errors are the driver's.
class GpuContext {
public:
  /// Absent where there is no driver or no such GPU.
  static Result<std::shared_ptr<GpuContext>> open(int gpu);
  virtual ~GpuContext() = default;

  /// At least one byte.
  virtual Result<void *> allocate(size_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Between addresses of this GPU, of others and of the host.
  virtual Result<void> copy(void *to, const void *from, size_t bytes) = 0;
  virtual uint64_t totalBytes() const = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GPUCONTEXT_H
