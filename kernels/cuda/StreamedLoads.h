// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_STREAMEDLOADS_H
#define MGPU_KERNELS_CUDA_STREAMEDLOADS_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace mgpu::kernels::cuda {

/// Loads of large buffers whose elements a launch reads once, so that the first
/// cache had better keep other things. `unwritten` is by argument
/// (planner/dag/LaunchFacts.h). Loads read the same whatever the answer is.
llvm::DenseSet<mlir::Operation *>
streamedLoads(mlir::func::FuncOp entry, const std::vector<bool> &unwritten,
              Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_STREAMEDLOADS_H
