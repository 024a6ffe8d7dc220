// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_WARPEXECUTE_H
#define MGPU_KERNELS_LOWER_WARPEXECUTE_H

#include "support/Types.h"

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Rewrites gpu.warp_execute_on_lane_0 as the dialect describes it: an scf.if
/// for lane 0. Vectors distributed over the lanes pass through workgroup
/// memory, between barriers of the subgroup, as do all results. A vector of
/// several dimensions is dealt row by row: if lanes share a dimension,
/// neighbours along the last one follow each other. Fails, with a diagnostic at
/// the operation, for subgroups of other than 32 lanes, for operands that lanes
/// a block lacks should give, and for values that memory cannot hold.
mlir::LogicalResult lowerWarpExecution(mlir::ModuleOp module, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_WARPEXECUTE_H
