// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROWLAUNCH_H
#define MGPU_PLANNER_IMPORT_ROWLAUNCH_H

// Reductions of rows whose elements threads share. docs/numerics.md states the
// order in which they are added.

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mgpu::planner {

/// `first`, and with `fuse` the operations after it that may run in its launch,
/// where that shares rows (RowThreads.h): linalg operations of one number of
/// rows and one length of them, among which is a reduction of the rows or a
/// softmax along them. Nothing between them has an effect but allocation, and
/// what one writes another touches only at the same element of its row, or row.
/// Empty where a thread for each row is better, and where `first` does not
/// begin such a run. `why`, if it is not null, gets why the next such operation
/// is not in it.
llvm::SmallVector<mlir::Operation *>
rowRunFrom(mlir::Operation *first, bool fuse, std::string *why = nullptr);

/// Replaces such a run, which is not empty, by its launch. Adds the memrefs
/// whose loads are not needed any more to `forwarded` (TensorFusion.h). Fails
/// after a diagnostic.
mlir::LogicalResult launchRows(mlir::Operation *first, bool fuse,
                               llvm::SetVector<mlir::Value> &forwarded);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROWLAUNCH_H
