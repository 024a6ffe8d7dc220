// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_WORKOF_H
#define MGPU_PLANNER_IMPORT_WORKOF_H

// What a launch asks of a GPU: instructions, lines of memory and sectors, as
// the text of its body has them. Tunables and the emitter may do better (wide
// accesses, tiles, a row in registers); they do not change which bytes a block
// needs.

#include "planner/dag/Dag.h"
#include "planner/import/KernelView.h"

namespace mgpu::planner {

LaunchWork workOf(mlir::Region &body, Dim3 grid, Dim3 block, KernelViews &views,
                  AffineEvaluator &affine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_WORKOF_H
