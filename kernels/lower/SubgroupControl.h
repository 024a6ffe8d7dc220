// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_SUBGROUPCONTROL_H
#define MGPU_KERNELS_LOWER_SUBGROUPCONTROL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Takes what the lanes of a subgroup do together (shuffles, rotations,
/// subgroup reductions) out of every scf.if, scf.for and scf.while at which the
/// threads of a block may part: `if (warp == 0)`, `for (row = warp; ...)`. All
/// threads of the block then do it, as often as the subgroup that does it most,
/// with zeros where they take no part, and the rest stays behind a condition.
/// Where not all lanes of a subgroup come to it, or none, the kernel stops
/// (KernelDialects.h).
/// Leaves alone what carries or gives memrefs, or has a barrier of the block.
void flattenSubgroupControl(mlir::func::FuncOp entry);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_SUBGROUPCONTROL_H
