// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_AWAITS_H
#define MGPU_DIALECT_MGPU_AWAITS_H

// Loops of kernels that wait until other threads have changed memory.

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::ir {

/// The reads by which `loop` waits: atomics that change nothing, or loads, of
/// memory that the loop does not write. Empty where it does more than read, or
/// where what it loads depends on its trips.
llvm::SmallVector<mlir::Operation *> awaitedReads(mlir::scf::WhileOp loop);

/// Whether `op` is or has such a loop.
bool awaitsOthers(mlir::Operation *op);

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_AWAITS_H
