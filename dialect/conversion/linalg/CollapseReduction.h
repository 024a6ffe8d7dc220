// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_COLLAPSEREDUCTION_H
#define MGPU_DIALECT_CONVERSION_LINALG_COLLAPSEREDUCTION_H

// Reductions along several dimensions as reductions along one.

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mgpu::conversion {

/// Makes, before `op`, the same operation with one reduction dimension in place
/// of several, on views of its inputs. Null where there are not several, or
/// they do not follow each other in memory.
mlir::linalg::GenericOp collapseReduction(mlir::linalg::LinalgOp op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_COLLAPSEREDUCTION_H
