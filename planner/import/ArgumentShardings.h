// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ARGUMENTSHARDINGS_H
#define MGPU_PLANNER_IMPORT_ARGUMENTSHARDINGS_H

// The grid and the annotations of arguments of a program of the shard dialect,
// or the mesh and the shardings of one of Shardy, read and changed before it is
// converted.

#include "planner/dag/Shardings.h"
#include "support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace mgpu::planner {

/// Gives the program's one shard.grid the sizes of `text`, as `2x4`, and
/// verifies what depends on them. Usage where there is no such grid.
Result<void> setGrid(mlir::ModuleOp module, const std::string &text);

Shardings shardingsOf(mlir::ModuleOp module, mlir::func::FuncOp entry);

/// Annotates the arguments of these names so, instead of as the program does.
void setSplits(mlir::func::FuncOp entry,
               const std::map<std::string, Split> &splits);

/// The program, with the names of its values.
std::string programText(mlir::ModuleOp module);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ARGUMENTSHARDINGS_H
