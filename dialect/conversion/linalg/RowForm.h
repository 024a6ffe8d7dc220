// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_ROWFORM_H
#define MGPU_DIALECT_CONVERSION_LINALG_ROWFORM_H

// Describes what a linalg operation does with the rows of its operands.

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mgpu::conversion {

enum class RowKind {
  Reduce,   ///< each row becomes one number, or several
  Softmax,  ///< softmax along each row
  Elements, ///< each element of each row is computed alone
  Scalars,  ///< only numbers are used that each row has one of
};

/// An operand that is a memref. `axes` are the dimensions that index it, in
/// order: dimensions of the rows, or `element`; none if something else does.
struct RowAccess {
  static constexpr int element = -1;
  mlir::Value memref;
  bool isWritten = false;
  std::optional<llvm::SmallVector<int>> axes;
};

struct RowForm {
  RowKind kind = RowKind::Scalars;
  llvm::SmallVector<int64_t> rows; ///< how many, along each dimension
  int64_t length = 0;              ///< of a row; 0 for Scalars
  /// The dimension within a row: one of the iteration space or of the softmax's
  /// buffers; for Scalars one past the last dimension.
  unsigned along = 0;
  /// For Reduce and Softmax: whether neighbours in a row are neighbours in
  /// memory; if not, elements of neighbouring rows are.
  bool isInner = true;
  llvm::SmallVector<RowAccess> accesses;
  /// For each result of a reduction, what combines two parts of it.
  llvm::SmallVector<mlir::gpu::AllReduceOperation> combiners;
};

/// The form of `op` as an operation of that kind; none where it has no such.
/// Elements are those of rows along dimension `along`, by default the last.
std::optional<RowForm> rowFormOf(mlir::Operation *op, RowKind kind,
                                 std::optional<unsigned> along = {});

/// The device that all its memrefs were allocated on; null if that is not seen.
mlir::Value visibleDevice(const RowForm &form);

/// The operation of a reduction's body that takes one more element into result
/// `k`; its other operand is that element's.
mlir::Operation *combinerOf(mlir::linalg::LinalgOp op, unsigned k);

/// The neutral element: it changes nothing when it is combined with a number.
mlir::TypedAttr neutralOf(mlir::gpu::AllReduceOperation kind, mlir::Type type);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWFORM_H
