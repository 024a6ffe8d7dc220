// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_MATMULSHAPE_H
#define MGPU_KERNELS_CUDA_MATMULSHAPE_H

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
  /// "rows of A overlap", where they do or lie outside; else "". Rows are
  /// contiguous.
  std::string overlapRefusal(const std::string &name) const;
};

/// C += A * B, of any element types.
struct MatmulShape {
  mlir::func::FuncOp entry;
  /// Where other operations are before or after the sums, the loop that makes
  /// them (ProductBody.h); of C there are then only sizes and the element type.
  mlir::scf::ForOp loop;
  MatmulOperand a, b, c;
  int64_t m() const { return c.rows; }
  int64_t n() const { return c.columns; }
  int64_t k() const { return a.columns; }
};

/// That of a kernel whose @entry has the attribute mgpu.matmul, the positions
/// of A, B and C, which are its only arguments, of static shape, [batch x]
/// m x k, k x n, m x n; or of A and B alone where it has such a loop.
std::optional<MatmulShape> matmulShapeOf(mlir::ModuleOp kernel);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_MATMULSHAPE_H
