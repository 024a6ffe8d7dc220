// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_KERNELSTOP_H
#define MGPU_KERNELS_LOWER_KERNELSTOP_H

#include "mlir/IR/Builders.h"

namespace mgpu::kernels {

/// The unit attribute of a cf.assert whose message is the whole sentence.
inline constexpr llvm::StringLiteral isSentence = "mgpu.sentence";

/// A kernel stops where `condition` does not hold, with `sentence`, which
/// follows the kernel's name. It becomes a cf.assert with `isSentence`.
void createStop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                const llvm::Twine &sentence);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_KERNELSTOP_H
