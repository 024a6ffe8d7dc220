// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_TENSORLAUNCH_H
#define MGPU_PLANNER_IMPORT_TENSORLAUNCH_H

// Computations on device buffers that are no launches yet: linalg operations
// and scf.parallel in host code.

#include "planner/import/BuildDag.h"

namespace mgpu::planner {

/// Turns each linalg operation on device buffers, and each scf.parallel that
/// uses them, into an mgpu.launch without a stream on their device: a thread
/// for each point of the parallel dimensions, which runs the reduction
/// dimensions one after the other, the last one innermost. With options.fuse,
/// those that follow each other share a launch where TensorFusion.h finds that
/// they can; why others do not is left as `mgpu.not_fused` of the module. One
/// with a matrix product gets `mgpu.products`.
/// Fails, after a diagnostic, for operands that are no device's; leaves what
/// has no such form (dynamic shapes, results of scf.parallel) as it is.
mlir::LogicalResult launchTensorOps(mlir::ModuleOp module,
                                    const ParseOptions &options);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_TENSORLAUNCH_H
