// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_FOLDS_H
#define MGPU_DIALECT_MGPU_FOLDS_H

// Replaces folds of MLIR that give other values than the operations have.

#include "mlir/IR/Operation.h"

namespace mgpu::ir {

/// Writes in other operations, within `root`, what MLIR folds wrongly once it
/// finds out that operands are constants:
/// - math.atan2 of two zeros is folded into NaN;
/// - a cast of index to an integer and back is folded into nothing, as if the
///   first dropped no bits. Casts to integers of less than `width` bits become
///   truncations.
/// It is for use before anything is folded; what is written so is left alone.
/// Whether there is anything of the kind.
bool avoidWrongFolds(mlir::Operation *root, unsigned width);

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_FOLDS_H
