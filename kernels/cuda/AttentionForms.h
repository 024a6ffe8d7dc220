// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_ATTENTIONFORMS_H
#define MGPU_KERNELS_CUDA_ATTENTIONFORMS_H

// The forms that an attention has on a GPU: softmax(score(Q K^T)) V in one
// launch. A warp has a few queries, and a block's warps go through the keys
// together, which come to shared memory tile after tile. The softmax is
// corrected from tile to tile. The bits depend on the program and the form
// alone (docs/numerics.md).

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mgpu::kernels {

/// Whether `kernel` is one that emitAttention has a text for: an attention
/// (attentionForm()) whose values have at most 256 elements.
bool isAttention(mlir::ModuleOp kernel);

/// The text: products by threads, each of a key or an element of a value. A
/// block has MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32) of MGPU_TILE_Y queries.
Result<CudaKernel> emitAttention(mlir::ModuleOp kernel,
                                 const CudaEmitOptions &options);
KernelSpace attentionSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

/// Why there is no text on tensor cores; empty where there is one. "-" for a
/// kernel that is no attention of f16 or bf16.
std::string tensorAttentionRefusal(mlir::ModuleOp kernel);

/// The text on tensor cores (mma.sync), for sm_80 and later. Powers are rounded
/// to the type of V before they are multiplied. MGPU_TILE_Y is 16; MGPU_STAGES
/// tiles of keys are in shared memory.
Result<CudaKernel> emitTensorAttention(mlir::ModuleOp kernel,
                                       const CudaEmitOptions &options);
KernelSpace tensorAttentionSpace(mlir::ModuleOp kernel, Dim3 block,
                                 Dim3 maxGrid);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_ATTENTIONFORMS_H
