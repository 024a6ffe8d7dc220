// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_MGPUCOLLECTIVERULES_H
#define MGPU_DIALECT_MGPU_MGPUCOLLECTIVERULES_H

// Rules that the verifiers of several collectives share.

#include "dialect/mgpu/MgpuDialect.h"

namespace mgpu::ir {

/// The number of members, where the communicator's creation is visible.
std::optional<int64_t> getRankCount(mlir::Value communicator);

/// Rule 1 of the operations with two buffers: they have one element type.
mlir::LogicalResult verifySentType(mlir::Operation *op, mlir::MemRefType send,
                                   mlir::MemRefType recv);

/// Rule `number`: a reduction is of integers or floats.
mlir::LogicalResult verifyReducedType(mlir::Operation *op,
                                      mlir::MemRefType send, unsigned number);

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_MGPUCOLLECTIVERULES_H
