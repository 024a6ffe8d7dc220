// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_INLINEDSIZE_H
#define MGPU_PLANNER_IMPORT_INLINEDSIZE_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::planner {

/// Fails, after a diagnostic, where a function that `entry` reaches would have
/// more operations than `limit`, and than are written in the module, with all
/// that it calls in its place; or where calls nest so deep that following them
/// would need too large a stack.
mlir::LogicalResult checkInlinedSize(mlir::ModuleOp module,
                                     llvm::StringRef entry, uint64_t limit);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_INLINEDSIZE_H
