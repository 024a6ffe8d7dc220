// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_SOURCEKERNEL_H
#define MGPU_KERNELS_CUDA_SOURCEKERNEL_H

// Kernels that were written as CUDA C++: an @entry without a body whose
// attribute mgpu.cuda_source holds the file (planner/import/SourceKernel.cpp).

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// Whether `kernel` is one.
bool isSourceKernel(mlir::ModuleOp kernel);

/// Its file's text as it is, below macros for the default of each tunable.
/// Unsupported where a parameter has no type in CUDA C++.
Result<CudaKernel> emitSourceKernel(mlir::ModuleOp kernel,
                                    const CudaEmitOptions &options);

/// Its launch keeps its shape; its tunables are its author's.
planner::KernelSpace sourceKernelSpace(mlir::ModuleOp kernel, Dim3 block,
                                       Dim3 maxGrid);

/// Leaves of a kernel that is a file its reference, as an @entry like others.
/// Unsupported where it has none: the host cannot run CUDA C++.
Result<void> takeReference(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_SOURCEKERNEL_H
