// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H
#define MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H

#include "dialect/conversion/sdy/DeviceGroups.h"
#include "dialect/conversion/sdy/ManualCode.h"

namespace mgpu::conversion {

/// Whether devices exchange data in `op`, or it asks which one it is.
bool isCollective(mlir::Operation *op);

/// Replaces a collective of stablehlo by those of spmd. Fails with an error at
/// the operation.
mlir::LogicalResult lowerCollective(mlir::Operation *op, DeviceCode &code,
                                    ProcessGrid grid);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H
