// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_EXPANDNVIDIA_H
#define MGPU_KERNELS_LOWER_EXPANDNVIDIA_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Says what becomes of asynchronous copies, ldmatrix and the instructions of
/// dialect/mgpu/Instructions.h.
enum class NvidiaOps {
  Expanded,
  Kept, ///< where they are instructions of NVIDIA's GPUs
};

/// Writes operations of the nvgpu and nvvm dialects by those of the gpu dialect
/// that mean the same, so that every target runs them: mma.sync as a product of
/// a subgroup's matrices, ldmatrix as shuffles of addresses and loads,
/// asynchronous copies as copies, ids, barriers and shuffles. The others stay,
/// and are refused by name.
void expandNvidia(mlir::ModuleOp module, NvidiaOps ops);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_EXPANDNVIDIA_H
