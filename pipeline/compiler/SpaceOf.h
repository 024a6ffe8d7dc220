// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_SPACEOF_H
#define MGPU_PIPELINE_COMPILER_SPACEOF_H

#include "kernels/space/KernelSpace.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mgpu::kernels {

/// kernelSpaceOf (KernelBuild.h) of a kernel that is parsed already: a module
/// as emitHostKernel takes it. It is normalised.
Result<KernelSpace> spaceOf(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid,
                            KernelTarget target);

} // namespace mgpu::kernels

#endif // MGPU_PIPELINE_COMPILER_SPACEOF_H
