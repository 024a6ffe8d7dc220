// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_SPARSEPRODUCTS_H
#define MGPU_DIALECT_CONVERSION_GPU_SPARSEPRODUCTS_H

// Products of sparse matrices as launches. Each sum adds its terms in the order
// of the sparse matrix's memory, in the type that the operation names (f32
// where that is narrower), from zero; what was there before is added last.

#include "dialect/conversion/gpu/SparseHandles.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mgpu::conversion {

// A launch of a product with a sparse matrix tells a library that may compute
// it in its place, by #mgpu.sparse_product, where the matrix's rows lie in
// memory in order and all sizes are constants. The launch's arguments are the
// product's operands.

/// c += s * b; `computed` is the type of the sums.
void offerVector(mlir::gpu::LaunchOp launch, const SparseMatrix &s,
                 bool isTransposed, const DenseTensor &b, const DenseTensor &c,
                 mlir::Type computed);
void offerMatrix(mlir::gpu::LaunchOp launch, const SparseMatrix &s,
                 bool isTransposed, const DenseTensor &b, bool isSecond,
                 const DenseTensor &c, mlir::Type computed);
/// s += a * b where s has entries.
void offerSampled(mlir::gpu::LaunchOp launch, const SparseMatrix &s,
                  const DenseTensor &a, bool isFirst, const DenseTensor &b,
                  bool isSecond, mlir::Type computed);

/// Hands on to `made`, which was made of `op`, what one of these noted.
void takeSparse(mlir::Operation *op, ir::LaunchOp made);

/// y += op(A) x: a thread for each row.
mlir::LogicalResult compute(mlir::gpu::SpMVOp op, SparseHandles &handles,
                            SparseLaunches &launches);
/// C += op(A) op(B): a thread for each element.
mlir::LogicalResult compute(mlir::gpu::SpMMOp op, SparseHandles &handles,
                            SparseLaunches &launches);
/// C += op(A) op(B) where C has entries: a thread for each row, or each entry.
mlir::LogicalResult compute(mlir::gpu::SDDMMOp op, SparseHandles &handles,
                            SparseLaunches &launches);
/// The positions of C = op(A) op(B), which is CSR: a thread for each row.
mlir::LogicalResult compute(mlir::gpu::SpGEMMWorkEstimationOrComputeOp op,
                            SparseHandles &handles, SparseLaunches &launches);
/// The columns, in order, and the values of C: a thread for each row.
mlir::LogicalResult compute(mlir::gpu::SpGEMMCopyOp op, SparseHandles &handles,
                            SparseLaunches &launches);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_SPARSEPRODUCTS_H
