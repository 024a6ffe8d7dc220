// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H
#define MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Takes what the lanes of a subgroup do together (shuffles, rotations,
/// subgroup reductions) out of every scf.if on whose condition those lanes
/// agree, though not all of the block do: `if (warp == 0)`. All threads of the
/// block then do it, with zeros where the condition does not hold, and the rest
/// stays behind the condition. Leaves alone what it cannot prove or take out:
/// scf.while, and loops whose bounds are no constants.
void flattenSubgroupControl(mlir::func::FuncOp entry, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H
