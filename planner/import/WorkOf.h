// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_WORKOF_H
#define MGPU_PLANNER_IMPORT_WORKOF_H

// What a launch asks of a GPU: instructions, lines of memory and sectors, as
// the text of its body has them in one form. The emitter may do better (a row
// in registers); it does not change which bytes a block needs.

#include "planner/dag/Dag.h"
#include "planner/import/KernelView.h"
#include "planner/import/LaunchWidth.h"

namespace mgpu::planner {

LaunchWork workOf(mlir::Region &body, Dim3 grid, Dim3 block,
                  const LaunchWidth &form, KernelViews &views,
                  AffineEvaluator &affine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_WORKOF_H
