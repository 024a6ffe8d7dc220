// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_COMPUTATIONS_H
#define MGPU_DIALECT_CONVERSION_LINALG_COMPUTATIONS_H

// Computations of host code on device buffers that are not launches yet:
// linalg operations and scf.parallel.

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::conversion {

/// The computations that become one launch, in program order.
using LaunchGroup = llvm::SmallVector<mlir::Operation *>;

/// The number of an operation's group, an integer attribute. An operation
/// without it is a group of its own.
inline constexpr llvm::StringLiteral launchGroupAttr = "mgpu.launch_group";

/// How many computations share a launch at most. Questions about each of them
/// and all others of its launch take their time, and a longer kernel needs more
/// registers than there are.
inline constexpr size_t mostInLaunch = 64;

/// All computations in host code from function `entry` on, in program order.
llvm::SmallVector<mlir::Operation *> computationsOf(mlir::ModuleOp module,
                                                    llvm::StringRef entry);

/// The launches by groups, in the order of their first operations.
llvm::SmallVector<LaunchGroup> launchGroupsOf(mlir::ModuleOp module,
                                              llvm::StringRef entry);

/// Why a computation cannot become a launch, reported at it.
mlir::LogicalResult refuseComputation(mlir::Operation *op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_COMPUTATIONS_H
