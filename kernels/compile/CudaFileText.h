// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_CUDAFILETEXT_H
#define MGPU_KERNELS_COMPILE_CUDAFILETEXT_H

// Kernels that a user wrote as CUDA C++: their file is their text.

#include "kernels/compile/CudaText.h"

namespace mgpu::kernels {

/// The file as it is, below a macro for the default of each tunable. The launch
/// keeps its shape; only the tunables are there to choose. `name` is as
/// CudaText has it, `block` and `maxGrid` are those of the launches.
CudaText fileText(const planner::CudaFile &file, const std::string &name,
                  Dim3 block, Dim3 maxGrid);

/// The space of such a kernel on a target: its tunables alone.
KernelSpace fileSpace(const planner::CudaFile &file, Dim3 block, Dim3 maxGrid,
                      KernelTarget target);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_CUDAFILETEXT_H
