// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_RUNWHOLE_H
#define MGPU_DIALECT_CONVERSION_SDY_RUNWHOLE_H

// interpreter.run_parallel of functions that Shardy annotates.

#include "dialect/conversion/sdy/ManualCode.h"
#include "dialect/stablehlo/Companions.h"

namespace mgpu::conversion {

/// Whether a sharding in `function` cuts something, so that it computes on
/// whole tensors.
bool isOverWholeTensors(mlir::func::FuncOp function);

/// Calls `function` for wholes that are joined from the processes' parts.
/// Fails with an error at `op` where its types are no such parts.
mlir::LogicalResult runWhole(interpreter::RunParallelOp op,
                             mlir::func::FuncOp function, DeviceCode &code);

/// Where no sharding cuts anything, processes may hold different tensors, and
/// sdy.all_reduce adds them. Fails with an error at one that does not suit.
mlir::LogicalResult reduceOnEach(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_RUNWHOLE_H
