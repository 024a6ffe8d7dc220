// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_INSTRUCTIONS_H
#define MGPU_DIALECT_MGPU_INSTRUCTIONS_H

// Kernels for sm_90 ask for barriers in memory, tensor copies and products of
// warpgroups. The operations of nvgpu that do stay in a launch as instructions,
// which say nothing to other targets, and what they mean stands behind them.

#include "dialect/mgpu/MgpuDialect.h"

namespace mgpu::ir {

/// Whether the operation is there for GPUs that have it as an instruction: one
/// on an mbarrier, a tensor load, the name of a tensor map. Who does not emit
/// it leaves it out.
inline bool isInstruction(mlir::Operation *op) {
  return hasMark(op, Mark::Instruction);
}

/// Whether it says what the instruction before it means, the tensor load. Who
/// emits that leaves it out.
inline bool isMeaning(mlir::Operation *op) {
  return hasMark(op, Mark::Meaning);
}

/// Whether the loop over a thread's sums is the product of a warpgroup: of
/// memory in which they are, and of the matrices that its innermost loop loads,
/// the first one by rows, both f16 or bf16 in swizzled rows of 128 bytes.
inline bool isWarpgroupProduct(mlir::Operation *op) {
  return hasMark(op, Mark::WarpgroupProduct);
}

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_INSTRUCTIONS_H
