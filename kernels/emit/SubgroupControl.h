// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H
#define MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Takes what the lanes of a subgroup do together (shuffles, rotations,
/// subgroup reductions) out of every scf.if and scf.for on whose condition or
/// bounds those lanes agree, though not all of the block do: `if (warp == 0)`,
/// `for (row = warp; ...)`. All threads of the block then do it, as often as
/// the subgroup that does it most, with zeros where they take no part, and the
/// rest stays behind a condition. Leaves alone what it cannot prove or take
/// out, as scf.while.
void flattenSubgroupControl(mlir::func::FuncOp entry, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_SUBGROUPCONTROL_H
