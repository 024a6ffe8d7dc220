// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_PRODUCTS_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_PRODUCTS_H

// Sums of products. Sums of narrow floats are f32, rounded once at the end.

#include "dialect/conversion/stablehlo/Lowering.h"

namespace mgpu::conversion {

/// The type that products are added up in.
mlir::Type sumType(mlir::Type result);

/// A sum of products to be made. Maps are of the factors and of the sum.
struct Products {
  mlir::Operation *op;
  mlir::Value lhs, rhs;
  llvm::SmallVector<int64_t> shape;
  mlir::AffineMap lhsMap, rhsMap, sumMap;
  unsigned parallel, reduction;
};
mlir::Value makeSum(Lowering &low, const Products &of);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_PRODUCTS_H
