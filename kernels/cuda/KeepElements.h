// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_KEEPELEMENTS_H
#define MGPU_KERNELS_CUDA_KEEPELEMENTS_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace mgpu::kernels::cuda {

/// Keeps what a thread goes through again in registers: where several loops of
/// an entry have the same few trips and access the same element of a buffer in
/// each, only the first one loads it, and only the last one stores it. No bit
/// changes, as no other thread writes the element:
/// - either the kernel only reads the buffer, and no launch writes it
///   (`unwritten`, planner/dag/LaunchFacts.h),
/// - or the buffer is the only one it writes, and each element belongs to one
///   thread, by its ids.
/// The loops get the mark whole_loop.
void keepElements(mlir::func::FuncOp entry, const std::vector<bool> &unwritten,
                  Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_KEEPELEMENTS_H
