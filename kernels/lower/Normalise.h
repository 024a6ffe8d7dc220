// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_NORMALISE_H
#define MGPU_KERNELS_LOWER_NORMALISE_H

#include "kernels/lower/ExpandNvidia.h"
#include "support/Types.h"

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Writes, for both emitters, operations that are others in disguise: affine
/// ones; cluster ids and sizes, as every launch has clusters of one block;
/// scf.parallel in a kernel, which each thread runs in the order of its
/// iterations, so that its reductions have one result; what ExpandOps.h
/// lists; and gpu.warp_execute_on_lane_0 (WarpExecute.h). `block` is the
/// source's; `ops` are kept for CUDA C++ alone. Fails, with a diagnostic, on
/// what neither emitter takes (SubgroupMatrix.h).
mlir::LogicalResult normaliseKernel(mlir::ModuleOp module, Dim3 block,
                                    NvidiaOps ops = NvidiaOps::Expanded);

/// Erases values that no statement needs, also those that control flow hands on
/// to nobody: the C++ compiler would warn of them.
void eraseDeadCode(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_NORMALISE_H
