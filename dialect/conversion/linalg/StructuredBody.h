// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_STRUCTUREDBODY_H
#define MGPU_DIALECT_CONVERSION_LINALG_STRUCTUREDBODY_H

// Builds what a thread of a point launch does for a linalg operation.

#include "dialect/conversion/linalg/PointLaunch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mgpu::conversion {

/// Adds `op`, which has a point form, to the body of `launch`: the thread's
/// point of the parallel dimensions, and loops over the reduction dimensions.
/// With `marksLoop`, the loop of a matmul among others is marked.
void buildStructured(mlir::linalg::LinalgOp op, PointLaunch &launch,
                     bool marksLoop);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_STRUCTUREDBODY_H
