// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_MESHNAMES_H
#define MGPU_PLANNER_IMPORT_MESHNAMES_H

#include "support/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>

namespace mgpu::planner {

/// Checks `--assign NAME=MESH`, by name, of a program whose entry is `entry`:
/// a computation or tensor has the name, and the topology the mesh. Fails with
/// Usage, and says what there is.
Result<void> checkMeshNames(mlir::ModuleOp module, mlir::Operation *entry,
                            const std::map<std::string, std::string> &meshes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_MESHNAMES_H
