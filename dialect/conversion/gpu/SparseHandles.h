// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_SPARSEHANDLES_H
#define MGPU_DIALECT_CONVERSION_GPU_SPARSEHANDLES_H

// Follows the handles of a function's sparse operations, and makes launches of
// such an operation.

#include "dialect/conversion/gpu/SparseMatrix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mgpu::conversion {

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
