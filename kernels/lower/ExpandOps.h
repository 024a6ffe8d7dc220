// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_EXPANDOPS_H
#define MGPU_KERNELS_LOWER_EXPANDOPS_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Writes operations that not both emitters have as others that both have:
/// math.clampf (as min(max(x, low), high), which lets NaN through), sincos,
/// isnan and the like; of vectors, shuffles, rotations, subgroup reductions and
/// additions and multiplications with two results, lane by lane; loads and
/// stores of vectors whose rank is not 1, row by row, and of i1, one by one;
/// elements of them at positions that are values, and reductions of floats
/// narrower than 32 bits and of those that pass over NaN, one by one; what
/// divides, shifts or counts the bits of an i1, on i8; powers and operations
/// with two results of index, on i64; divisions of the index dialect that round
/// up or down, as arith's; and integers of 32 bits or more as bf16, so that
/// they are rounded once.
void expandOperations(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_EXPANDOPS_H
