// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_INSTRUCTIONS_H
#define MGPU_DIALECT_MGPU_INSTRUCTIONS_H

// Kernels for sm_90 ask for barriers in memory, tensor copies and products of
// warpgroups. The operations of nvgpu that do stay in a launch as instructions,
// which say nothing to other targets, and what they mean stands behind them.

#include "mlir/IR/Operation.h"

namespace mgpu::ir {

/// The unit attribute of operations that are there for GPUs that have them as
/// instructions: those on an mbarrier, tensor loads, and the names of tensor
/// maps. Who does not emit them leaves them out.
inline constexpr llvm::StringLiteral instructionMark = "mgpu.instruction";

inline bool isInstruction(mlir::Operation *op) {
  return op->hasAttr(instructionMark);
}

/// The unit attribute of operations that say what the instruction before them
/// means: the tensor load. Who emits that leaves them out.
inline constexpr llvm::StringLiteral meaningMark = "mgpu.meaning";

/// The unit attribute of the loop over a thread's sums that is the product of a
/// warpgroup: of memory in which they are, and of the matrices that its
/// innermost loop loads, the first one by rows, both f16 or bf16 in swizzled
/// rows of 128 bytes.
inline constexpr llvm::StringLiteral warpgroupMark = "mgpu.warpgroup_product";

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_INSTRUCTIONS_H
