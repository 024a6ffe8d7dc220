// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_LANECHECK_H
#define MGPU_KERNELS_LOWER_LANECHECK_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Whether `op` makes the lanes of a subgroup meet, and no others. The kernel
/// must have no matrices and lane-0 regions (SubgroupMatrix.h, WarpExecute.h).
bool meetsInSubgroup(mlir::Operation *op);

/// Fails, with a diagnostic at the op, where an operation that the lanes of a
/// subgroup do together is under control that some of them come through and
/// others do not, by their places in the block alone. Control that depends on
/// anything else, and that not all threads of the block share, is trusted.
mlir::LogicalResult checkLanesMeet(mlir::func::FuncOp entry, Dim3 block);
/// Fails, with a diagnostic at the op, where a gpu.barrier or gpu.all_reduce of
/// a prepared kernel is under control that its block's threads do not share.
mlir::LogicalResult checkBarriers(mlir::func::FuncOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_LANECHECK_H
