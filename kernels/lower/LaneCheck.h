// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_LANECHECK_H
#define MGPU_KERNELS_LOWER_LANECHECK_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Fails, with a diagnostic at the op, where an operation that the lanes of a
/// subgroup do together is under control that some of them come through and
/// others do not, by their places in the block alone. Control that depends on
/// anything else, and that not all threads of the block share, is trusted.
mlir::LogicalResult checkLanesMeet(mlir::func::FuncOp entry, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_LANECHECK_H
