// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_EXPANSION_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_EXPANSION_H

// The files of stablehlo-expand replace operations that others express by
// those, one function an operation.

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace mgpu::conversion {

/// Builds where the operation stands, and gives what stands for its results.
/// Failure has a diagnostic at the operation; no values at all leave it as it
/// is.
using Expansion = mlir::FailureOr<llvm::SmallVector<mlir::Value>> (*)(
    mlir::ImplicitLocOpBuilder &, mlir::Operation *);

/// The operations of one file, by name.
struct NamedExpansion {
  llvm::StringRef name;
  Expansion expand;
};
template <typename Op, mlir::FailureOr<llvm::SmallVector<mlir::Value>> (
                           *expandOp)(mlir::ImplicitLocOpBuilder &, Op)>
NamedExpansion expansion() {
  return {Op::getOperationName(),
          [](mlir::ImplicitLocOpBuilder &b, mlir::Operation *op) {
            return expandOp(b, mlir::cast<Op>(op));
          }};
}
llvm::ArrayRef<NamedExpansion> batchNormExpansions();
llvm::ArrayRef<NamedExpansion> shapeExpansions();
llvm::ArrayRef<NamedExpansion> libraryExpansions();

/// chlo.broadcast_*: an operation whose operands are broadcast as NumPy does.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
expandBroadcasting(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_EXPANSION_H
