// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_TENSORSHAPES_H
#define MGPU_DIALECT_CONVERSION_TENSORSHAPES_H

// Tensors of static shape in another shape, or order of dimensions.

#include "mlir/IR/Builders.h"

namespace mgpu::conversion {

/// Dimension k of the result is dimension `order[k]` of `input`.
mlir::Value transposedTensor(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value input, llvm::ArrayRef<int64_t> order);

/// The elements of `input`, in order, in a shape of as many.
mlir::Value reshapedTensor(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value input, llvm::ArrayRef<int64_t> shape);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_TENSORSHAPES_H
