// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_HOSTMESSAGES_H
#define MGPU_KERNELS_EMIT_HOSTMESSAGES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Where `condition` does not hold, a kernel stops with `sentence`, which
/// follows the kernel's name (a cf.assert that is no program's).
void createStop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                const llvm::Twine &sentence);

/// gpu.printf becomes C's printf; cf.assert, where it fails, what a handler of
/// SIGILL finds the sentence by (hostKernelStop of HostKernelAbi.h).
mlir::LogicalResult lowerMessages(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_HOSTMESSAGES_H
