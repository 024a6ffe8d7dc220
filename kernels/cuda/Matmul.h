// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_MATMUL_H
#define MGPU_KERNELS_CUDA_MATMUL_H

// Matrix products in CUDA C++ of their own: tiles in shared memory, several
// elements to a thread. What such a kernel means is its body, a thread for each
// element of C that adds A * B in order of k (dialect/conversion/linalg);
// the text adds in that order too, so the bits are those of the body.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// Whether `kernel` is one that emitMatmul has a text for: @entry has the
/// attribute mgpu.matmul, the positions of A, B and C, which are its only
/// arguments, of f32 or f64 and static shape, [batch x] m x k, k x n, m x n.
bool isMatmul(mlir::ModuleOp kernel);

/// The text of one. A block of MGPU_BLOCK_X x MGPU_BLOCK_Y threads computes
/// MGPU_TILE_X elements along n and MGPU_TILE_Y along m with each, and stages
/// MGPU_DEPTH steps of k at a time.
Result<CudaKernel> emitMatmul(mlir::ModuleOp kernel,
                              const CudaEmitOptions &options);

/// Its blocks, tiles and depths.
KernelSpace matmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_MATMUL_H
