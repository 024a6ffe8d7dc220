// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H
#define MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H

// Products of a matrix and a few vectors: what takes the time is to read the
// matrix, so that tiles of the result are of no use.

#include "dialect/conversion/FewVectors.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mgpu::conversion {

/// The loop m, n and k of `op` where it is C[m, n] of A[m, k] and B[n, k],
/// whichever way each lies in memory, where m has few values and B is large.
/// None where it is better computed by tiles.
std::optional<mlir::linalg::ContractionDimensions>
skinnyProductOf(mlir::linalg::LinalgOp op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_SKINNYPRODUCT_H
