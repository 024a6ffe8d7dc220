// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_ROWRUN_H
#define MGPU_DIALECT_CONVERSION_LINALG_ROWRUN_H

// Operations that share the rows of a launch.

#include "dialect/conversion/linalg/Computations.h"
#include "dialect/conversion/linalg/RowThreads.h"

#include <string>
#include <vector>

namespace mgpu::conversion {

struct RowOp {
  mlir::Operation *op;
  RowForm form;
};

struct RowRun {
  std::vector<RowOp> ops;
  RowSharing sharing = RowSharing::Block;
  std::string why; ///< why the next operation is not in it
};

/// `first`, and with `fuse` the operations after it that may run in its launch,
/// where that shares rows (RowThreads.h): linalg operations that share a row
/// count and a row length, at least one of which reduces the rows or is a
/// softmax along them. Nothing between them has an effect but allocation, and
/// what one writes another touches only at the same element of its row, or row.
/// Empty where a thread for each row is better, and where `first` does not
/// begin such a run.
RowRun findRowRun(mlir::Operation *first, bool fuse);

/// The run that consists of all operations of a group; none where they do not
/// share rows.
std::optional<RowRun> rowRunOf(const LaunchGroup &group);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWRUN_H
