// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H
#define MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H

// How a step of a sum of products is computed: in f32 and f64 by one operation
// (fma), which rounds once. A body asks for it by the flag `contract` on the
// product and on the sum, which any copy of the body keeps. An fma of f64 keeps
// the flag: processors without fma multiply and add
// (kernels/host/SmallFloats.h).

#include "dialect/conversion/FewVectors.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mgpu::conversion {

/// Sets the flag in the body of `op` where that is an operation of linalg with
/// a name of its own that adds up products in f32 or f64. The body of a
/// linalg.generic says itself what it does.
void markProduct(mlir::linalg::LinalgOp op);

/// Replaces in `results`, which a copy of a body gives, each product and sum
/// that have the flag by math.fma.
void addByFma(mlir::OpBuilder &b, llvm::MutableArrayRef<mlir::Value> results);

// Products of a matrix and a few vectors: what takes the time is to read the
// matrix, so that tiles of the result are of no use.

/// The loop m, n and k of `op` where it is C[m, n] of A[m, k] and B[n, k],
/// whichever way each lies in memory, where m has few values and B is large.
/// None where it is better computed by tiles.
std::optional<mlir::linalg::ContractionDimensions>
skinnyProductOf(mlir::linalg::LinalgOp op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_PRODUCTSTEPS_H
