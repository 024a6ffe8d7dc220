// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_COMPARATORS_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_COMPARATORS_H

// Finds what comparators of sorts say of all elements.

#include "dialect/conversion/stablehlo/Lowering.h"

namespace mgpu::conversion {

/// Whether `comparator` is known to order all elements (a strict weak order):
/// it compares one key of both sides, or several, the first that differs. Where
/// it compares floats by LT or GT, it comes to put NaN last, of which these say
/// nothing.
bool ordersAll(mlir::Block &comparator);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_COMPARATORS_H
