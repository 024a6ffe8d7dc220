// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ANNOTATIONS_H
#define MGPU_PLANNER_IMPORT_ANNOTATIONS_H

// The grid and the annotations of arguments of a program of the shard dialect,
// or the mesh and the shardings of one of Shardy, read and changed before it is
// converted.

#include "planner/dag/Shardings.h"
#include "support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace mgpu::planner {

/// Checks the names of `--assign NAME=MESH` for a program whose entry is
/// `entry`: a computation or tensor has the name, and the topology the mesh.
/// Fails with Usage, and says what there is.
Result<void> checkMeshNames(mlir::ModuleOp module, mlir::Operation *entry,
                            const std::map<std::string, std::string> &meshes);

/// Checks the name of `--schedule NAME`, and that the entry has meshes if it
/// is neither "auto" nor empty. There must be one for `remat`. Fails with
/// Usage.
Result<void> checkSchedule(mlir::Operation *entry, const std::string &name,
                           bool remat);

/// The meshes of the entry's topology, which get devices one after the other.
std::vector<MeshDevices> meshesOf(mlir::Operation *entry);

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
