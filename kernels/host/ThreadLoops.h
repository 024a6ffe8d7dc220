// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_THREADLOOPS_H
#define MGPU_KERNELS_HOST_THREADLOOPS_H

#include "kernels/space/KernelSpace.h"
#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// How a kernel's threads become loops.
struct HostShape {
  /// The source's block; in y and z also that of the object.
  Dim3 block;
  /// How many threads of the source a block of the object has. If it differs
  /// from `block`, the kernel was prepared for it (KernelPrepare.h).
  Dim3 covered;
  uint32_t items = 1;  ///< threads along x in one iteration of their loop
  uint32_t unroll = 0; ///< for innermost sequential loops; 0: LLVM's choice
  /// Threads that run a sequential loop together; 0: the emitter's choice.
  uint32_t tileX = 0, tileY = 0;
  /// The emitter may make vectors, of so many bytes.
  bool makesVectors = true;
  uint32_t vectorBytes = 32;

  explicit HostShape(Dim3 block) : block(block), covered(block) {}
  HostShape(Dim3 block, const KernelConfig &config);
};

/// Called at the start of loops about which HostCodegen, which turns it into
/// loop metadata, is to know the LoopMark given as i32.
inline constexpr const char *loopMarker = "mgt_loop";
enum LoopMark : unsigned {
  /// A loop over threads; its iterations do not depend on each other.
  ParallelThreads,
  /// Makes the loop over a tile: to be unrolled once it is vectorised.
  ParallelTile,
  /// An innermost sequential loop, where `unroll` was given.
  Sequential,
  /// A loop whose body is long enough as it is.
  Rolled,
};
/// Emits the call where `b` points.
void markLoop(mlir::OpBuilder &b, mlir::Location loc, LoopMark what);

/// Replaces the prepared kernel (KernelPrepare.h) by a function of the host
/// ABI, `(ptr arguments, ptr launch)`, that loops over blocks and, inside, over
/// the block's threads. Operations run in maximal per-thread segments; a
/// segment ends at a barrier, at an operation of the whole block or subgroup,
/// and where control that all threads share begins or ends. Values of a thread
/// that live on past their segment are kept in arrays indexed by thread.
/// Fails with a diagnostic where a barrier is under divergent control.
mlir::LogicalResult makeThreadLoops(mlir::func::FuncOp kernel,
                                    const HostShape &shape);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_THREADLOOPS_H
