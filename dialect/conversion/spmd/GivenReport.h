// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_GIVENREPORT_H
#define MGPU_DIALECT_CONVERSION_SPMD_GIVENREPORT_H

// Remarks about the layouts and collectives that a program itself names.

#include "dialect/conversion/ExchangeCost.h"

namespace mgpu::conversion {

/// Reports on a function before it is partitioned: what each collective of
/// static shape costs, and without annotations the layouts of arguments and
/// results.
void reportGiven(mlir::func::FuncOp function, const ExchangeCost &cost);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_GIVENREPORT_H
