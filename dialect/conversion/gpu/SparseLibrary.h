// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_SPARSELIBRARY_H
#define MGPU_DIALECT_CONVERSION_GPU_SPARSELIBRARY_H

// A launch of a product with a sparse matrix tells a library that may compute
// it in its place, by #mgpu.sparse_product, where the matrix's rows lie in
// memory in order and all sizes are constants. The launch's arguments are the
// product's operands.

#include "dialect/conversion/gpu/SparseMatrix.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mgpu::conversion {

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

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_SPARSELIBRARY_H
