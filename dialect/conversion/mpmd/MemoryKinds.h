// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_MEMORYKINDS_H
#define MGPU_DIALECT_CONVERSION_MPMD_MEMORYKINDS_H

#include "dialect/mpmd/MpmdDialect.h"

namespace mgpu::conversion {

/// Whether `op` is a custom call that says where its tensor is.
bool isPlacement(mlir::Operation *op);

/// Takes what a function and its fragments say of the memory in which arguments
/// and results are, by attributes and by custom calls of
/// `annotate_device_placement`. Afterwards the function's attributes say it,
/// and the custom calls are gone. Fails with an error where two say different
/// memories of one value.
mlir::LogicalResult takeMemoryKinds(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_MEMORYKINDS_H
