// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_HOSTMESSAGES_H
#define MGPU_KERNELS_HOST_HOSTMESSAGES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// gpu.printf becomes C's printf; cf.assert, where it fails, what a handler of
/// SIGILL finds the sentence by (hostKernelStop of HostKernelAbi.h).
mlir::LogicalResult lowerMessages(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_HOSTMESSAGES_H
