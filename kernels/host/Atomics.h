// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ATOMICS_H
#define MGPU_KERNELS_HOST_ATOMICS_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Turns memref.generic_atomic_rmw, and each memref.atomic_rmw that is not a
/// single instruction of LLVM's, into loops that compare and exchange. To be
/// run while arith is there: MLIR's own lowering takes no body but an empty
/// one. Elements have 8, 16, 32 or 64 bits; others are an error at the op.
mlir::LogicalResult lowerAtomics(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_ATOMICS_H
