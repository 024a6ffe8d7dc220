// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_TENSORMATMUL_H
#define MGPU_KERNELS_CUDA_TENSORMATMUL_H

// Matrix products of f16 and bf16 on tensor cores (mma.sync), their tiles
// brought to shared memory by copies that run ahead (cp.async). Sums are in
// f32, from what C held, rounded once where C is narrower. A GPU may add the
// 16 products of one instruction in an order of its own, and the body of such a
// kernel rounds each sum of a narrow C: so the bits may differ from the body's,
// unless all sums are exact.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// Why there is no such text for the kernel; empty where there is one. "-" for
/// a kernel that is not a matrix product of two f16 or bf16 matrices.
std::string tensorMatmulRefusal(mlir::ModuleOp kernel);

/// The text. A block of MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32) computes
/// 32 MGPU_TILE_X columns and MGPU_BLOCK_Y MGPU_TILE_Y rows; MGPU_WARPS_Y of
/// its warps lie one above the other, the others side by side; MGPU_STAGES
/// tiles of MGPU_DEPTH steps of k are in shared memory.
Result<CudaKernel> emitTensorMatmul(mlir::ModuleOp kernel,
                                    const CudaEmitOptions &options);

KernelSpace tensorMatmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_TENSORMATMUL_H
