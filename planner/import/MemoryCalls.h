// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_MEMORYCALLS_H
#define MGPU_PLANNER_IMPORT_MEMORYCALLS_H

// memref operations of host code: allocations, globals, views and copies.

#include "planner/import/HostScope.h"

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::planner {

class MemoryCalls {
public:
  MemoryCalls(mlir::ModuleOp module, HostScope &host)
      : module(module), host(host) {}

  /// Does an operation of the memref dialect. Fails after a diagnostic.
  Result<void> visit(mlir::Operation *op);

private:
  Result<void> visitAlloc(mlir::Operation *op);
  Result<void> visitDealloc(mlir::Operation *op);
  Result<void> visitCast(mlir::Operation *op);
  Result<void> visitSubview(mlir::Operation *op);
  Result<void> visitReinterpretCast(mlir::Operation *op);
  Result<void> visitTranspose(mlir::Operation *op);
  Result<void> visitReshape(mlir::Operation *op);
  Result<void> visitGetGlobal(mlir::Operation *op);
  Result<void> visitDim(mlir::Operation *op);
  Result<void> visitCopy(mlir::Operation *op);

  mlir::ModuleOp module;
  HostScope &host;
  llvm::DenseMap<mlir::Operation *, BufferId> globals;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_MEMORYCALLS_H
