// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ANNOTATIONS_H
#define MGPU_PLANNER_IMPORT_ANNOTATIONS_H

// The grid and the annotations of arguments of a program of the shard dialect,
// or the mesh and the shardings of one of Shardy, read and changed before it is
// converted.

#include "planner/dag/Shardings.h"
#include "support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace mgpu::planner {

/// Changes the grid, the mesh and the annotations so. Errors: Usage where the
/// program has no such grid, has devices of its own beside a mesh, or has no
/// such argument, dimension or axis; Invalid where it is none for the grid.
Result<void> applyShardings(mlir::ModuleOp module, mlir::func::FuncOp entry,
                            const GivenShardings &given);

Shardings shardingsOf(mlir::ModuleOp module, mlir::func::FuncOp entry);

/// The program, with the names of its values.
std::string programText(mlir::ModuleOp module);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ANNOTATIONS_H
