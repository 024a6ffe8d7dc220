// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_LIFTCONTROL_H
#define MGPU_KERNELS_LOWER_LIFTCONTROL_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Makes scf operations of the branches among blocks (cf), in functions and in
/// the bodies of operations, so that each region has one block. Fails, with a
/// diagnostic at the op, on what does not end and on recursion.
mlir::LogicalResult liftControl(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_LIFTCONTROL_H
