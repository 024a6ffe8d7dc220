// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_PRINTFFORMAT_H
#define MGPU_KERNELS_LOWER_PRINTFFORMAT_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace mgpu::kernels {

/// The format of `op` with the length modifier of each conversion replaced by
/// that of its argument, so that C's printf, to which narrow integers are
/// passed as int, i64 and index as long long and floats as double, reads what
/// it was given. Fails, with a diagnostic at `op`, unless there is one argument
/// of the right kind for each conversion. %s, %p, %n and a width or precision
/// of '*' are refused: no argument can stand for them.
mlir::FailureOr<std::string> checkedFormat(mlir::gpu::PrintfOp op);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_PRINTFFORMAT_H
