// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_TIMESRUN_H
#define MGPU_PLANNER_IMPORT_TIMESRUN_H

// How often a launch runs a region of its kernel, without running it.

#include "planner/import/AffineForm.h"

namespace mgpu::planner {

/// Trips of the counted loops and the share of the threads that the conditions
/// around `region` let through, within `body`; times the threads of the launch
/// it is how often the launch runs it. Exact where bounds and conditions are
/// affine and take neighbouring values equally often (ids of threads and
/// blocks that make a global index), and no two of different ids, nor two loops
/// of the same, depend on each other. What is decided by anything else is taken
/// to run, once, as is what stands behind "is not equal".
double timesRun(mlir::Region &region, mlir::Region &body,
                AffineEvaluator &affine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_TIMESRUN_H
