// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_CUDA_LAUNCHSHAPE_H
#define MGPU_KERNELS_EMIT_CUDA_LAUNCHSHAPE_H

#include "support/Types.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mgpu::kernels::cuda {

/// Which shapes of a launch do what the source's does.
struct LaunchShape {
  bool reshapable = false;
  std::string reason;
  bool usesShared = false; ///< static or dynamic, or that of a reduction
};

/// A kernel whose threads never meet may run with any block, and several items
/// per thread: its ids follow from the global index. One with barriers, shared
/// memory or subgroup operations keeps its block.
LaunchShape launchShapeOf(mlir::ModuleOp module, Dim3 block);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_EMIT_CUDA_LAUNCHSHAPE_H
