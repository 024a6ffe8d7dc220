// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_NORMALISE_H
#define MGPU_KERNELS_EMIT_NORMALISE_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Writes, for both emitters, operations that are others in disguise: affine
/// ones; cluster ids and sizes, as every launch has clusters of one block; and
/// scf.parallel in a kernel, which each thread runs in the order of its
/// iterations, so that its reductions have one result.
mlir::LogicalResult normaliseKernel(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_NORMALISE_H
