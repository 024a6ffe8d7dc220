// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H
#define MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H

// How a step of a sum of products is computed: in f32 by one operation (fma),
// which rounds once. A body asks for it by the flag `contract` on the product
// and on the sum, which any copy of the body keeps.

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mgpu::conversion {

/// Sets the flag in the body of `op` where that is an operation of linalg with
/// a name of its own that adds up products in f32. What a linalg.generic does
/// is what its body says.
void markProduct(mlir::linalg::LinalgOp op);

/// What a copy of a body gives, `results`, with math.fma for each product and
/// sum that have the flag.
void addByFma(mlir::OpBuilder &b, llvm::MutableArrayRef<mlir::Value> results);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H
