// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_GPULAUNCH_H
#define MGPU_PLANNER_IMPORT_GPULAUNCH_H

// Launches as the gpu dialect writes them.

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::planner {

/// Of an operation that cannot be captured: why.
inline constexpr llvm::StringLiteral refusedAttr = "mgpu.refused";

/// Turns each gpu.launch_func in host code, with the gpu.func it names, and
/// each gpu.launch into an mgpu.launch without a stream on the device of its
/// memrefs. Functions that kernels call move out of their gpu.module. Tokens
/// go: what depends on what follows from the memory. Fails, after a
/// diagnostic, for memrefs that are no device's. What an mgpu.launch does not
/// have (clusters of a size, kernels of several blocks of operations, streams
/// of another dialect) is left with the reason as `refusedAttr`.
mlir::LogicalResult launchGpuOps(mlir::ModuleOp module);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_GPULAUNCH_H
