// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_DEVICECODE_H
#define MGPU_DIALECT_CONVERSION_SPMD_DEVICECODE_H

// Code of single devices in a function over whole tensors: collectives, the
// device's number, and what computes with values that differ between devices.

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::conversion {

/// The outermost operations that each device must do by itself. Collectives of
/// which all devices get the same are among them, but not what uses their
/// results. An error names a layout that is asked for of a value which differs
/// between devices, and operations on a device's part of a tensor.
mlir::FailureOr<llvm::DenseSet<mlir::Operation *>>
deviceCodeOf(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_DEVICECODE_H
