// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ASSERTIONS_H
#define MGPU_KERNELS_HOST_ASSERTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// Has each thread whose assertion fails print what CUDA prints then. The
/// assertions stay behind it and stop the kernel.
void announceAssertions(mlir::func::FuncOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_ASSERTIONS_H
