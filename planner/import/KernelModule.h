// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELMODULE_H
#define MGPU_PLANNER_IMPORT_KERNELMODULE_H

// A launch's body as a program of its own: a module with one function @entry
// whose arguments are the captured memrefs and scalars.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/dag/Dag.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"

namespace mgpu::planner {

/// The form of one captured value in the kernel.
struct Capture {
  mlir::Value value;
  mlir::Type type; ///< of the kernel's argument; null for a cloned constant
  KernelArgument argument;
};

/// All that decides a kernel.
struct KernelParts {
  ir::LaunchOp launch;
  llvm::ArrayRef<Capture> captures; ///< each value that the body uses, once
  Dim3 block;
  int64_t dynamicSharedBytes = 0;
};

/// Whether the body can be taken out of the program. Fails after a diagnostic
/// at the operation that cannot.
mlir::LogicalResult checkKernelBody(ir::LaunchOp launch);

/// The module of a kernel whose body was checked.
mlir::OwningOpRef<mlir::ModuleOp> buildKernelModule(const KernelParts &kernel);

/// Where a matrix product's operands, the launch's `args`, are among the
/// arguments of its kernel; none of another kernel.
llvm::SmallVector<int64_t> productPositions(const KernelParts &kernel);

/// Whether every function that `root` calls, or these call, has a body. Fails
/// after a diagnostic at the call.
mlir::LogicalResult checkCallees(mlir::Operation *root, mlir::ModuleOp module);
/// Copies functions that were checked into the module of a kernel.
void cloneCallees(mlir::Operation *root, mlir::ModuleOp from,
                  mlir::ModuleOp into);

/// Notes them on the module's @entry, unless they are none.
void setDynamicSharedBytes(mlir::ModuleOp module, int64_t bytes);

/// With locations, which messages of the compiler name.
std::string printKernel(mlir::ModuleOp module);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELMODULE_H
