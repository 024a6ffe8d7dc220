// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_ANNOTATED_H
#define MGPU_DIALECT_CONVERSION_SDY_ANNOTATED_H

// Programs over whole tensors, some of which have a sharding.

#include "dialect/sdy/SdyDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::conversion {

/// Makes spmd.layout_constraint operations of Shardy's annotations: those of
/// arguments, results and operations, and sharding constraints. Axes of which
/// some sharding takes a part become several axes of the mesh. Fails with an
/// error at what has no such form: unreduced axes, several meshes, meshes that
/// list their devices.
mlir::LogicalResult constrainLayouts(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_ANNOTATED_H
