// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROWFORM_H
#define MGPU_PLANNER_IMPORT_ROWFORM_H

// What a linalg operation does with the rows of its operands.

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mgpu::planner {

enum class RowKind {
  Reduce,   ///< of each row, results that are one number
  Softmax,  ///< along each row
  Elements, ///< of each element of each row
  Scalars,  ///< of numbers that each row has one of
};

/// An operand that is a memref. `axes` are the dimensions that index it, in
/// order: of the rows, or `element`; none if something else does.
struct RowAccess {
  static constexpr int element = -1;
  mlir::Value memref;
  bool isWritten = false;
  std::optional<llvm::SmallVector<int>> axes;
};

struct RowForm {
  RowKind kind = RowKind::Scalars;
  llvm::SmallVector<int64_t> rows; ///< how many, along each dimension
  int64_t length = 0;              ///< of a row; 0 of Scalars
  /// The dimension within a row, of the iteration space or the softmax's
  /// buffers; behind the last one of Scalars.
  unsigned along = 0;
  /// Whether neighbours in a row are neighbours in memory; if not, those of
  /// neighbouring rows are. Of Reduce and Softmax.
  bool isInner = true;
  llvm::SmallVector<RowAccess> accesses;
  /// Of a reduction: by result, what combines two parts of it.
  llvm::SmallVector<mlir::gpu::AllReduceOperation> combiners;
};

/// The form of `op` as an operation of that kind; none where it has no such.
/// Elements are those of rows along dimension `along`, by default the last.
std::optional<RowForm> rowFormOf(mlir::Operation *op, RowKind kind,
                                 std::optional<unsigned> along = {});

/// The operation of a reduction's body that takes one more element into result
/// `k`; its other operand is that element's.
mlir::Operation *combinerOf(mlir::linalg::LinalgOp op, unsigned k);

/// What changes nothing when it is combined with a number of that type.
mlir::TypedAttr neutralOf(mlir::gpu::AllReduceOperation kind, mlir::Type type);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROWFORM_H
