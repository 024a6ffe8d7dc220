// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_WGMMAMATMUL_H
#define MGPU_KERNELS_CUDA_WGMMAMATMUL_H

// Matrix products of f16 and bf16 for sm_90a: a warp brings boxes of A and B to
// shared memory by tensor copies (TMA), stage after stage, and warpgroups
// multiply them there (wgmma). Sums are in f32, from what C held, rounded once
// where C is narrower; the bits may differ from the body's as TensorMatmul's
// may.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// Why there is no such text for the kernel; empty where there is one. "-" for
/// a kernel that is not a matrix product of two f16 or bf16 matrices.
std::string wgmmaMatmulRefusal(mlir::ModuleOp kernel);

/// The text. A block has MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32). The last one
/// loads and the others multiply, four to a warpgroup; the block computes 32
/// MGPU_TILE_X columns and (MGPU_BLOCK_Y - 1) MGPU_TILE_Y rows. MGPU_STAGES
/// tiles of MGPU_DEPTH steps of k are in dynamic shared memory; the space says
/// how much that is. A and B are tensor maps, CudaKernel::tensorMaps, the same
/// ones for every configuration.
Result<CudaKernel> emitWgmmaMatmul(mlir::ModuleOp kernel,
                                   const CudaEmitOptions &options);

KernelSpace wgmmaMatmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_WGMMAMATMUL_H
