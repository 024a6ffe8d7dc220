// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_ROWLAUNCH_H
#define MGPU_DIALECT_CONVERSION_LINALG_ROWLAUNCH_H

// Launches whose threads share the rows of a run. docs/numerics.md states the
// order in which they add.

#include "dialect/conversion/linalg/RowRun.h"

namespace mgpu::conversion {

/// Makes the launch of a run on `device`, before its last operation. The
/// operations stay. Marks the buffers whose numbers are kept in registers
/// (ForwardStores.h).
ir::LaunchOp launchRows(const RowRun &run, mlir::Value device);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWLAUNCH_H
