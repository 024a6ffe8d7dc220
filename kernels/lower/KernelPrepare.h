// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELPREPARE_H
#define MGPU_KERNELS_LOWER_KERNELPREPARE_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Position of the values of the launch among a prepared kernel's arguments,
/// which follow the kernel's own.
enum LaunchArgument : unsigned {
  BlockId = 0,
  GridDim = 3,
  FirstBlock = 6, ///< where the part of the grid begins that runs
  EndBlock = 9,   ///< one past its last
  NumLaunchArguments = 12
};

/// Brings a kernel into the form ThreadLoops takes: affine lowered, structured
/// device functions inlined, GPU address spaces dropped (workgroup buffers
/// get the mark workgroup), launch queries replaced by arguments
/// or constants, gpu.thread_id and private allocas at the front of @entry,
/// fast-math flags dropped. `block` is the source's. Where `covered` is
/// another, the thread and block ids that are left are those of blocks of
/// `covered` threads counted from FirstBlock on, the source's are computed from
/// them, and threads from EndBlock on do nothing. Fails, with a diagnostic at
/// the op, on anything the host target does not support.
mlir::FailureOr<mlir::func::FuncOp> prepareKernel(mlir::ModuleOp module,
                                                  Dim3 block, Dim3 covered);

/// The error at a gpu.dynamic_shared_memory in any other launch.
inline constexpr const char *noDynamicMemory =
    "needs a launch with a dynamic_shared_memory_size above 0";

/// A kernel's results are IEEE's, whatever the source would allow.
void dropFastMath(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELPREPARE_H
