// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_CUDAOBJECTS_H
#define MGPU_KERNELS_COMPILE_CUDAOBJECTS_H

// A program's kernels as the CUDA target loads them.

#include "kernels/compile/CudaText.h"

#include <cstddef>
#include <vector>

namespace mgpu::kernels {

/// By KernelId.
struct CudaObjects {
  /// As Driver::loadKernel of the CUDA target takes them.
  std::vector<std::vector<std::byte>> objects;
  /// What a launch needs of the GPU's memory beside its buffers
  /// (planner::addWorkspaces), for a product that cuBLASLt computes.
  std::vector<uint64_t> workspaceBytes;
};

/// Whether cuBLASLt computes any of them where it is there.
bool hasProducts(const std::vector<CudaText> &texts);

/// `cubins`, for GPUs of `arch`, are those of the texts, in their order.
/// `hasLibrary`: cuBLASLt is there.
CudaObjects cudaObjects(const std::vector<CudaText> &texts,
                        const std::vector<std::vector<std::byte>> &cubins,
                        const std::string &arch, bool hasLibrary);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_CUDAOBJECTS_H
