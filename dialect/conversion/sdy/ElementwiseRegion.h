// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_ELEMENTWISEREGION_H
#define MGPU_DIALECT_CONVERSION_SDY_ELEMENTWISEREGION_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Support/LLVM.h"

namespace mgpu::conversion {

/// Applies a region of scalar code to each element of tensors of one shape.
/// Fails with an error at an operation that is not elementwise.
mlir::FailureOr<mlir::Value> applied(mlir::ImplicitLocOpBuilder &b,
                                     mlir::Region &region,
                                     mlir::ValueRange tensors);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_ELEMENTWISEREGION_H
