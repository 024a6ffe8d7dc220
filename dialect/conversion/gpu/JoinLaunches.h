// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_JOINLAUNCHES_H
#define MGPU_DIALECT_CONVERSION_GPU_JOINLAUNCHES_H

#include "dialect/mgpu/MgpuDialect.h"

namespace mgpu::conversion {

/// Why both cannot be one launch; empty if they can.
llvm::StringRef whyApart(ir::LaunchOp a, ir::LaunchOp b);

/// One launch in place of both, on the stream of `later` and where that stands,
/// whose first blocks are those of `earlier`.
ir::LaunchOp joinLaunches(ir::LaunchOp earlier, ir::LaunchOp later);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_JOINLAUNCHES_H
