// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_HOSTACCESS_H
#define MGPU_DIALECT_CONVERSION_GPU_HOSTACCESS_H

// Finds what host code does with memory by itself.

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

/// Whether host code that runs `op` reads or writes memory there: loads,
/// stores, and operations of the vector dialect on memrefs.
bool touchesMemory(mlir::Operation *op);

/// Whether `op` may write to the memref that it takes.
bool mayWrite(mlir::Operation *op, mlir::Value memref);

/// A size of memory, where the text shows it: a constant, a dimension of a
/// memref that is made of such sizes, or what `depth` operations at most
/// compute of them.
std::optional<int64_t> knownSize(mlir::Value size, int depth = 8);

/// Puts `made`, whose sizes are known, in the place of `memory`. Operations of
/// linalg see the sizes.
void replaceMemory(mlir::Value memory, mlir::Value made);

/// The memrefs that `memref` may be, or be a view of: through views, and
/// through what loops and branches carry.
llvm::SetVector<mlir::Value> rootsOf(mlir::Value memref);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_HOSTACCESS_H
