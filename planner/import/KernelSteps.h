// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELSTEPS_H
#define MGPU_PLANNER_IMPORT_KERNELSTEPS_H

#include "facts/Uniformity.h"
#include "planner/dag/KernelFacts.h"
#include "planner/import/KernelView.h"

namespace mgpu::planner {

/// Finds what the body of a kernel does in a launch: all but the kernel's hash
/// and the product that it is.
KernelFacts stepsOf(mlir::Region &body, Dim3 grid, Dim3 block,
                    KernelViews &views, AffineEvaluator &affine,
                    const facts::Uniformity &uniformity);

/// The widest form whose accesses are aligned, that leaves work for a large
/// GPU. It follows from the text of a kernel, so that the cost model and the
/// kernel's space name the same one.
LaunchWidth launchFormOf(mlir::Region &body, Dim3 grid, Dim3 block,
                         AffineEvaluator &affine,
                         const facts::Uniformity &uniformity);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELSTEPS_H
