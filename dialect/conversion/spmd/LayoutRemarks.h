// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_LAYOUTREMARKS_H
#define MGPU_DIALECT_CONVERSION_SPMD_LAYOUTREMARKS_H

// Words of the remarks about layouts and exchanges.

#include "dialect/conversion/spmd/Parts.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::conversion {

/// A remark of the category "spmd-partition-tensors". The text is made only
/// where remarks are listened to.
void emitReport(mlir::Location loc, llvm::function_ref<std::string()> text);

/// "%x at FILE:LINE:COLUMN".
std::string placeOf(mlir::Value value);

/// The split of a layout, and where its parts begin if they are not as equal as
/// can be.
std::string splitOf(spmd::LayoutAttr layout);

/// Reports what a device has of `value`.
void reportLayout(mlir::Value value, spmd::LayoutAttr layout);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_LAYOUTREMARKS_H
