// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_SPARSEMATRIX_H
#define MGPU_DIALECT_CONVERSION_GPU_SPARSEMATRIX_H

// The matrix or tensor that a handle stands for, and loops over the entries of
// a matrix.

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::conversion {

/// A sparse matrix: its sizes, and the memory that has its entries, each of one
/// dimension.
struct SparseMatrix {
  enum class Form {
    Coo,        ///< rows, columns and values
    Pairs,      ///< (row, column) side by side, and values
    Compressed, ///< positions, indices and values: CSR and CSC
    Blocks,     ///< the same of blocks, each of them row after row: BSR
    TwoToFour,  ///< all values, of which two of four are zero
  };
  Form form;
  bool hasRows = true; ///< positions are those of rows
  mlir::Value rows = {}, columns = {}, entries = {};
  mlir::Value positions = {}; ///< of COO, the rows
  mlir::Value indices = {};   ///< of pairs, both
  mlir::Value values = {};
  mlir::Value blockRows = {}, blockColumns = {}; ///< sizes of one block
  mlir::Value gridRows = {}; ///< how many rows of blocks there are
};

/// A dense vector or matrix, row after row in memory of one dimension.
struct DenseTensor {
  mlir::Value values = {};
  llvm::SmallVector<mlir::Value> sizes;
};

/// Memory of any number of dimensions as one of one; null where it has gaps.
mlir::Value flattened(mlir::OpBuilder &b, mlir::Value memref);

/// Element `at`, as an index or, with a type, as a number of that type.
mlir::Value indexAt(mlir::OpBuilder &b, mlir::Value memory, mlir::Value at);
mlir::Value numberAt(mlir::OpBuilder &b, mlir::Value memory, mlir::Value at,
                     mlir::Type type);

/// A number as one of another type, integers as signed ones.
mlir::Value converted(mlir::OpBuilder &b, mlir::Value number, mlir::Type type);

/// One entry, its column and where its value lies: from what is carried to the
/// entry, what is carried behind it.
using EntryBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &b, mlir::Value column, mlir::Value at,
    mlir::ValueRange carried)>;

/// Loops over the entries of one row of the matrix or, with `isTransposed`, of
/// its transposed one, in the order of memory. Where memory is not ordered by
/// such rows the loop looks at all entries.
llvm::SmallVector<mlir::Value>
forEntriesOfRow(mlir::OpBuilder &b, const SparseMatrix &matrix,
                bool isTransposed, mlir::Value row, mlir::ValueRange carried,
                EntryBody body);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_SPARSEMATRIX_H
