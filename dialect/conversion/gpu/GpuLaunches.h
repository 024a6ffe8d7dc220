// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_GPULAUNCHES_H
#define MGPU_DIALECT_CONVERSION_GPU_GPULAUNCHES_H

// Launches of the gpu dialect as launches of mgpu's.

#include "dialect/conversion/gpu/GpuHost.h"

namespace mgpu::conversion {

/// The shape that both kinds of launches give alike.
struct GpuLaunchShape {
  llvm::SmallVector<mlir::Value> grid, block, cluster;
  mlir::Value dynamicSharedBytes;
};
GpuLaunchShape shapeOf(mlir::gpu::LaunchOp op);
GpuLaunchShape shapeOf(mlir::gpu::LaunchFuncOp op);

/// The device that runs a launch: the one chosen, else that of its memory.
mlir::FailureOr<mlir::Value> deviceFor(mlir::Operation *op,
                                       const DefaultDevice &now);

/// Answers what a kernel asks of clusters of blocks, which `shape` gives sizes:
/// blocks whose ids have one quotient are of one cluster.
mlir::LogicalResult answerClusters(mlir::Operation *op,
                                   const GpuLaunchShape &shape,
                                   ir::LaunchOp launch);

/// A launch that awaits changes of memory, and a later one that names it and
/// that no token orders behind it, become one: run one after the other, the
/// first would never end. Fails, after a diagnostic at both, where they cannot.
mlir::LogicalResult joinWaitingLaunches(mlir::func::FuncOp function);

/// Makes a launch of mgpu's before `op`, which is left to be erased.
mlir::LogicalResult convertLaunch(mlir::gpu::LaunchOp op,
                                  const DefaultDevice &now);
mlir::LogicalResult convertLaunch(mlir::gpu::LaunchFuncOp op,
                                  const DefaultDevice &now);
/// Launches a kernel that is compiled already.
mlir::LogicalResult launchBinary(mlir::gpu::LaunchFuncOp op,
                                 mlir::gpu::BinaryOp binary,
                                 const DefaultDevice &now);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_GPULAUNCHES_H
