// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H
#define MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H

// Products of a matrix and a few vectors: what takes the time is to read the
// matrix, so that tiles of the result are of no use.

#include "dialect/conversion/FewVectors.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mgpu::conversion {

/// C[m, n] of A[m, k] and B[n, k], whichever way each lies in memory, where m
/// has few values and B is large. The three are loops of the operation.
struct SkinnyProduct {
  unsigned m, n, k;
  mlir::OpOperand *vectors, *matrix; ///< A and B
};

/// `op` as such a product; none where it is not one that is better computed so
/// than by tiles.
std::optional<SkinnyProduct> skinnyProductOf(mlir::linalg::LinalgOp op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H
