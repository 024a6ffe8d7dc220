// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_THREADLOOPS_H
#define MGPU_KERNELS_EMIT_THREADLOOPS_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Called at the start of each innermost thread loop whose iterations are
/// independent of each other; HostCodegen turns it into loop metadata. Its i32
/// argument is 1 for a loop over a tile, to be unrolled once it is vectorised.
inline constexpr const char *parallelMarker = "mgt_parallel_thread_loop";

/// Replaces the prepared kernel (KernelPrepare.h) by a function of the host
/// ABI, `(ptr arguments, ptr launch)`, that loops over blocks and, inside, over
/// the block's threads. Operations run in maximal per-thread segments; a
/// segment ends at a barrier, at an operation of the whole block or subgroup,
/// and where control that all threads share begins or ends. Values of a thread
/// that live on past their segment are kept in arrays indexed by thread.
/// Fails with a diagnostic where a barrier is under divergent control.
mlir::LogicalResult makeThreadLoops(mlir::func::FuncOp kernel, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_THREADLOOPS_H
