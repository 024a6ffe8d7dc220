// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROWRUN_H
#define MGPU_PLANNER_IMPORT_ROWRUN_H

// Operations that share the rows of a launch.

#include "planner/import/RowThreads.h"

#include <string>
#include <vector>

namespace mgpu::planner {

struct RowOp {
  mlir::Operation *op;
  RowForm form;
};

struct RowRun {
  std::vector<RowOp> ops;
  RowSharing sharing = RowSharing::Block;
  std::string why; ///< the next operation is not in it
};

/// The run that rowRunFrom (RowLaunch.h) describes; empty where there is none.
RowRun findRowRun(mlir::Operation *first, bool fuse);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROWRUN_H
