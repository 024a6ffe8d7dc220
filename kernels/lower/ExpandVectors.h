// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_EXPANDVECTORS_H
#define MGPU_KERNELS_LOWER_EXPANDVECTORS_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Writes operations on whole vectors by those that both emitters have, with
/// MLIR's own patterns: contractions (as sums of outer products, in order of
/// the reduced index), outer products, reductions of several dimensions,
/// transposes, casts of bits, masks, transfers, gathers, and loads and stores
/// under a mask, lane by lane.
mlir::LogicalResult expandVectors(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_EXPANDVECTORS_H
