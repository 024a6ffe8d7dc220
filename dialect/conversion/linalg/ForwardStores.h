// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_FORWARDSTORES_H
#define MGPU_DIALECT_CONVERSION_LINALG_FORWARDSTORES_H

// Takes what a shared launch saves: values stay in registers, and buffers that
// nothing else reads go.

#include "dialect/mgpu/MgpuDialect.h"

namespace mgpu::conversion {

/// Marks the mgpu.alloc of `memref`, if it is one: a launch no longer loads
/// from it what it has stored.
void markForwarded(mlir::Value memref);

/// Replaces loads that follow a store to the same place, in the same block of
/// `launch`, by its value, and marks their buffers. The launch is one of
/// computations that may share it (PointForm.h, RowThreads.h): stores in
/// between through other memrefs do not touch that place. Erases stores that
/// are overwritten before anything reads them.
void forwardStores(ir::LaunchOp launch);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_FORWARDSTORES_H
