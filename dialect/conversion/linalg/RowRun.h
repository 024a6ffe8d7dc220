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

/// Finds the operations that may run in the launch of a first one, where that
/// shares rows (RowThreads.h): linalg operations that share a row count and a
/// row length, at least one of which reduces the rows or is a softmax along
/// them. Nothing between them has an effect but allocation, and what one writes
/// another touches only at the same element of its row, or row. The program
/// stays as it is meanwhile, so that what lies ahead of an operation is looked
/// at once for all operations before it.
class RowRuns {
public:
  /// Empty where a thread for each row is better, and where `first` does not
  /// begin such a run.
  RowRun from(mlir::Operation *first);

private:
  mlir::Operation *reductionAfter(mlir::Operation *first, mlir::Value device);

  /// By operation and the device that it works on. Null: none is in reach.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, mlir::Operation *>
      reductions;
};

/// The run that consists of all operations of a group; none where they do not
/// share rows.
std::optional<RowRun> rowRunOf(const LaunchGroup &group);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWRUN_H
