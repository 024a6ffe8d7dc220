// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_MESHNAMES_H
#define MGPU_PLANNER_IMPORT_MESHNAMES_H

#include "planner/dag/Shardings.h"
#include "support/Result.h"

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

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_MESHNAMES_H
