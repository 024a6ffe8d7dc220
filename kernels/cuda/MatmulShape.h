// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_MATMULSHAPE_H
#define MGPU_KERNELS_CUDA_MATMULSHAPE_H

#include "planner/dag/KernelWork.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mgpu::kernels::cuda {

/// One of a product's three matrices; strides and offset in elements.
struct MatmulOperand {
  unsigned position = 0; ///< among the arguments
  int64_t rows = 0, columns = 0, batch = 1;
  int64_t rowStride = 0, columnStride = 0, batchStride = 0, offset = 0;
  mlir::Type element;

  /// "x[batch * 64LL + row * 8LL + (k + step)]".
  std::string at(const std::string &name, const std::string &row,
                 const std::string &column) const;
  /// The same matrix by columns: that is how a turned B is stored.
  MatmulOperand turned() const;
  /// "rows of A overlap", where they do or lie outside; else "". Rows are
  /// contiguous.
  std::string overlapRefusal(const std::string &name) const;
};

/// C += A * B, of any element types, or more than that.
struct MatmulShape {
  mlir::func::FuncOp entry;
  /// Where other operations are before or after the sums, the loop that makes
  /// them (ProductBody.h); of C there are then only sizes and the element type,
  /// unless these operations do no more than begin the sums with 0.
  mlir::scf::ForOp loop;
  bool overwrites = false; ///< C = A * B, and C is whole
  MatmulOperand a, b, c;
  /// Whether B's columns are what lies contiguous in memory, and B as its rows
  /// lie there.
  bool isTurned() const { return b.columnStride != 1 && b.rowStride == 1; }
  MatmulOperand storedB() const { return isTurned() ? b.turned() : b; }
  /// Whether a step of the sums is one operation.
  bool addsByFma() const;
  int64_t m() const { return c.rows; }
  int64_t n() const { return c.columns; }
  int64_t k() const { return a.columns; }
  planner::Product facts() const; ///< of a library's types
};

/// That of a kernel whose @entry has the attribute mgpu.matmul, the positions
/// of A, B and C, which are its only arguments, of static shape, [batch x]
/// m x k, k x n, m x n, where with mgpu.b_turned B is stored n x k; or of A and
/// B alone where it has such a loop.
std::optional<MatmulShape> matmulShapeOf(mlir::ModuleOp kernel);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_MATMULSHAPE_H
