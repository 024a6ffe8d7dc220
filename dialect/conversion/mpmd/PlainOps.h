// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_PLAINOPS_H
#define MGPU_DIALECT_CONVERSION_MPMD_PLAINOPS_H

// Builds operations of programs over several meshes on plain tensors.

#include "dialect/mpmd/MpmdDialect.h"

#include "mlir/IR/Builders.h"

namespace mgpu::conversion {

/// The tensor's type without its mesh; null for what is no ranked tensor.
mlir::RankedTensorType globalTypeOf(mlir::Type type);

/// The tensors of `op` combined in their order, as `valueOf` has each.
mlir::Value combined(mlir::OpBuilder &b, mpmd::ReduceOp op,
                     llvm::function_ref<mlir::Value(mlir::Value)> valueOf);

/// Replaces an operation of the mpmd dialect, in which no other one stands, by
/// what it means on plain tensors.
void makePlain(mlir::Operation *op);

/// Puts the operations of the first body of `op` before it, and uses what it
/// returns for the results.
void inlineBody(mlir::Operation *op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_PLAINOPS_H
