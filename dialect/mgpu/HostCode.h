// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_HOSTCODE_H
#define MGPU_DIALECT_MGPU_HOSTCODE_H

// Reads from the text of host code which operations it runs, and on which
// device a memref lies.

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::ir {

/// Visits the operations that host code runs from function `entry` on: those of
/// the function and of all functions that it calls. Device code is left out:
/// the bodies of mgpu.launch, gpu.launch and scf.parallel, and functions that
/// only these call. `visit` may not erase operations.
void walkHostCode(mlir::ModuleOp module, llvm::StringRef entry,
                  llvm::function_ref<void(mlir::Operation *)> visit);

/// Whether `op` may make an induction of one, a value that grows by the same in
/// each trip of a loop: casts, sums, differences and products of integers.
bool mayKeepInduction(mlir::Operation *op);

/// The memref that an operation makes `memref` of, as a view; null if it is
/// none.
mlir::Value viewSourceOf(mlir::Value memref);

/// The memref that `memref` is a view of; `memref` itself if it is not a view.
mlir::Value rootOf(mlir::Value memref);

/// Whether the text shows that two views have no element in common.
bool areApart(mlir::Value a, mlir::Value b);

/// The memrefs from outside that an operation or its regions name.
llvm::SmallVector<mlir::Value> memrefsOf(mlir::Operation *op);

/// The device handle that a memref was allocated with; null where the text does
/// not show it.
mlir::Value deviceOf(mlir::Value memref);

/// The device handle of the first of several memrefs, which `op` computes on.
/// Fails, after a diagnostic at `op`, where the text does not show one for
/// each.
mlir::FailureOr<mlir::Value> deviceOfAll(mlir::Operation *op,
                                         mlir::ValueRange memrefs);

/// The device handle with which mgpu.alloc made all of the memrefs; null where
/// the text does not show one.
mlir::Value visibleDevice(mlir::ValueRange memrefs);

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_HOSTCODE_H
