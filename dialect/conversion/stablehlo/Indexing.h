// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_INDEXING_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_INDEXING_H

// Indices that tensors hold.

#include "dialect/conversion/stablehlo/Lowering.h"

namespace mgpu::conversion {

/// `number` as an index; it has an integer type with a sign or none.
mlir::Value indexOf(mlir::ImplicitLocOpBuilder &b, mlir::Value number,
                    mlir::Type type);
/// The index from 0 to `most` that is nearest to `number`.
mlir::Value clampIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value number,
                       mlir::Type type, int64_t most);
mlir::Value addIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value i,
                     mlir::Value j);

/// Where a dynamic slice begins: numbers that host code knows, or tensors of
/// one number.
class Starts {
public:
  Starts(Lowering &low, mlir::ValueRange old);
  /// In the body of an operation: the start of dimension `k`, at most `most`.
  mlir::Value at(mlir::ImplicitLocOpBuilder &b, unsigned k, int64_t most) const;

private:
  llvm::SmallVector<mlir::Value> numbers, tensors;
  llvm::SmallVector<mlir::Type> types;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_INDEXING_H
