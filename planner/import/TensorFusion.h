// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_TENSORFUSION_H
#define MGPU_PLANNER_IMPORT_TENSORFUSION_H

// Which linalg operations and parallel loops on device buffers may share a
// launch, and what a shared launch saves: values stay in registers, buffers
// nobody else reads go.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/BuildDag.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

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

/// Of f16 or bf16 factors: what cards compute by a library unless another form
/// is asked for.
bool isNarrowMatmul(mlir::linalg::LinalgOp op);

/// One dimension of a computation's points.
struct PointRange {
  mlir::OpFoldResult lower, upper, step;
  bool operator==(const PointRange &) const = default;
};
/// Of a linalg operation that has a point form, or an scf.parallel.
llvm::SmallVector<PointRange> rangesOf(mlir::Operation *op);
/// How long they are; none where one is no constant.
std::optional<llvm::SmallVector<int64_t>>
extentsOf(llvm::ArrayRef<PointRange> ranges);

/// Whether operations that share a launch may have `op` between them: it
/// allocates on devices, or has no effect.
bool mayBeBetween(mlir::Operation *op);

/// `first`, which has a point form or is an scf.parallel, and the operations
/// after it that may run in its threads, in order. Nothing between them has an
/// effect but allocation; their points are the same; and what one writes,
/// another touches only in the thread that writes it. A matrix product takes
/// part with what begins its sums and with what goes on with them, none of
/// which has a reduction of its own, because targets compute it in texts of
/// their own; `products` says which products do. `why` gets why the next
/// operation is not among them.
llvm::SmallVector<mlir::Operation *>
fusibleFrom(mlir::Operation *first, FuseProducts products, std::string &why);

/// Loads that follow a store to the same place, in the same block of `launch`,
/// take its value. The launch is of fusibleFrom's operations: stores in between
/// through other memrefs do not touch that place. Adds the memrefs that lost a
/// load to `forwarded`. Drops stores that are overwritten before anybody reads
/// them.
void forwardStores(mgpu::ir::LaunchOp launch,
                   llvm::SetVector<mlir::Value> &forwarded);

/// Drops those of `forwarded` that are buffers of mgpu.alloc which launches now
/// only store to, and what stores there.
void dropUnreadBuffers(const llvm::SetVector<mlir::Value> &forwarded);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_TENSORFUSION_H
