// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_ASYNCREGIONS_H
#define MGPU_DIALECT_CONVERSION_ASYNCREGIONS_H

// Host code of the async dialect: regions that run when others have run. They
// are inlined where they stand, and their tokens become those of the gpu
// dialect.

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::conversion {

void registerAsyncDialect(mlir::DialectRegistry &registry);

bool hasAsyncRegions(mlir::ModuleOp module);

/// Inlines each async.execute and orders what it asks of a device by tokens.
/// Fails, after a diagnostic, where something of the async dialect is left.
mlir::LogicalResult inlineAsyncRegions(mlir::ModuleOp module);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_ASYNCREGIONS_H
