// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_SPARSEHANDLES_H
#define MGPU_DIALECT_CONVERSION_GPU_SPARSEHANDLES_H

// Follows the handles of a function's sparse operations, and makes launches of
// such an operation.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::conversion {

// The matrix or tensor that a handle stands for, and loops over the entries of
// a matrix.

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

/// The launches that one operation becomes, in the order of its tokens.
class SparseLaunches {
public:
  explicit SparseLaunches(mlir::gpu::AsyncOpInterface op);

  mlir::OpBuilder &builder() { return b; }
  /// A launch with a thread for each of `count`; null where that is none.
  mlir::gpu::LaunchOp
  add(llvm::StringRef name, mlir::Value count,
      llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value k)> body);
  /// How many entries the positions of a matrix say it has, for host code.
  mlir::Value countOf(const SparseMatrix &matrix);
  /// Operations that wait for this one now wait for the launches.
  void finish();

private:
  mlir::gpu::AsyncOpInterface op;
  mlir::OpBuilder b;
  llvm::SmallVector<mlir::Value> tokens; ///< that the next launch waits for
};

class SparseHandles {
public:
  /// Null, after a diagnostic, where the text does not show what it stands for.
  const SparseMatrix *matrix(mlir::Operation *op, mlir::Value handle);
  const DenseTensor *tensor(mlir::Operation *op, mlir::Value handle,
                            size_t dimensions);
  bool isProduct(mlir::Value handle) const { return products.contains(handle); }
  void markProduct(mlir::Value handle) { products.insert(handle); }

  mlir::LogicalResult make(mlir::gpu::CreateDnTensorOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::CreateCooOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::CreateCooAoSOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::CreateCsrOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::CreateCscOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::CreateBsrOp op, SparseLaunches &);
  mlir::LogicalResult make(mlir::gpu::Create2To4SpMatOp op,
                           SparseLaunches &launches);
  mlir::LogicalResult make(mlir::gpu::SetCsrPointersOp op, SparseLaunches &);

private:
  mlir::LogicalResult add(mlir::Operation *op, mlir::Value handle,
                          SparseMatrix matrix);

  llvm::DenseMap<mlir::Value, SparseMatrix> matrices;
  llvm::DenseMap<mlir::Value, DenseTensor> tensors;
  llvm::DenseSet<mlir::Value> products;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_SPARSEHANDLES_H
