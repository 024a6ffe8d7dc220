// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_LANECHECK_H
#define MGPU_KERNELS_EMIT_LANECHECK_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Fails, with a diagnostic at the op, where an operation that the lanes of a
/// subgroup do together is under control at which they surely part, whatever
/// the kernel reads.
mlir::LogicalResult checkLanesMeet(mlir::func::FuncOp entry, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_LANECHECK_H
