// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELDIALECTS_H
#define MGPU_KERNELS_LOWER_KERNELDIALECTS_H

#include "mlir/IR/Builders.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mgpu::kernels {

/// Registers the dialects a kernel may be written in, or made of, and the
/// translation of the LLVM dialect, for emitHostKernel.
void registerHostEmitDialects(mlir::DialectRegistry &registry);

/// A kernel stops where `condition` does not hold, with `sentence`, which
/// follows the kernel's name. It becomes a cf.assert with the mark `sentence`.
void createStop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                const llvm::Twine &sentence);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELDIALECTS_H
