// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_TENSORFUSION_H
#define MGPU_PLANNER_IMPORT_TENSORFUSION_H

// Which linalg operations on device buffers may share a launch, and what a
// shared launch saves: values stay in registers, buffers nobody else reads go.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::planner {

/// What a memref is a view of; the memref itself if of nothing.
mlir::Value rootOf(mlir::Value memref);

/// Whether `op` becomes one launch with a thread for each point of its parallel
/// dimensions: its shapes are static, it works on buffers, and no two threads
/// write the same element.
bool hasPointForm(mlir::linalg::LinalgOp op);

/// Of its parallel dimensions, in order.
llvm::SmallVector<int64_t> parallelExtents(mlir::linalg::LinalgOp op);

/// Linalg's own matrix products, a batch or not, neither operand transposed.
bool isPlainMatmul(mlir::linalg::LinalgOp op);

/// `first`, which has a point form, and the operations after it that may run in
/// its threads, in order. Nothing between them has an effect but allocation;
/// their parallel dimensions are the same; and what one writes, another touches
/// only in the thread that writes it. Matrix products are alone: targets have
/// texts of their own for them.
llvm::SmallVector<mlir::linalg::LinalgOp>
fusibleFrom(mlir::linalg::LinalgOp first);

/// Loads that follow a store to the same place, in the same block of `launch`,
/// take its value. The launch is of fusibleFrom's operations: stores in between
/// through other memrefs do not touch that place. Adds the memrefs that lost a
/// load to `forwarded`.
void forwardStores(mgpu::ir::LaunchOp launch,
                   llvm::SetVector<mlir::Value> &forwarded);

/// Drops those of `forwarded` that are buffers of mgpu.alloc which launches now
/// only store to, and what stores there.
void dropUnreadBuffers(const llvm::SetVector<mlir::Value> &forwarded);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_TENSORFUSION_H
