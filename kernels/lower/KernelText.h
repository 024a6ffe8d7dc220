// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELTEXT_H
#define MGPU_KERNELS_LOWER_KERNELTEXT_H

#include <string>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mgpu::kernels {

/// The module as text that depends on its meaning alone: generic form, no
/// locations, no aliases, no names from the source. For hashing.
std::string canonicalKernelText(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELTEXT_H
