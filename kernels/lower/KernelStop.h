// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELSTOP_H
#define MGPU_KERNELS_LOWER_KERNELSTOP_H

#include "mlir/IR/Builders.h"

namespace mgpu::kernels {

/// A kernel stops where `condition` does not hold, with `sentence`, which
/// follows the kernel's name. It becomes a cf.assert with the mark `sentence`.
void createStop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                const llvm::Twine &sentence);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELSTOP_H
