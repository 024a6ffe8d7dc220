// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELDIALECTS_H
#define MGPU_KERNELS_LOWER_KERNELDIALECTS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mgpu::kernels {

/// Registers the dialects a kernel may be written in, or made of, and the
/// translation of the LLVM dialect, for emitHostKernel.
void registerHostEmitDialects(mlir::DialectRegistry &registry);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELDIALECTS_H
