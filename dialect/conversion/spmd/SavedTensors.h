// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_SAVEDTENSORS_H
#define MGPU_DIALECT_CONVERSION_SPMD_SAVEDTENSORS_H

// Copies of tensors whose buffer is about to be written. One-shot bufferization
// cannot make them for bufferization.materialize_in_destination, which must
// write in place.

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mgpu::conversion {

/// The tensor that `value` is a view of after bufferization; itself if it is
/// not a view.
inline mlir::Value sourceOfViews(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (!mlir::isa<mlir::tensor::ExtractSliceOp, mlir::tensor::ExpandShapeOp,
                   mlir::tensor::CollapseShapeOp, mlir::tensor::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

inline mlir::Value copyOf(mlir::OpBuilder &b, mlir::Value value) {
  return mlir::bufferization::AllocTensorOp::create(
      b, value.getLoc(), mlir::cast<mlir::RankedTensorType>(value.getType()),
      mlir::ValueRange(), value);
}

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_SAVEDTENSORS_H
