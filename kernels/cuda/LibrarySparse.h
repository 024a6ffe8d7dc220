// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_LIBRARYSPARSE_H
#define MGPU_KERNELS_CUDA_LIBRARYSPARSE_H

// Products with a sparse matrix that a library (cuSPARSE) can compute in a
// kernel's place. It adds in an order of its own.

#include "kernels/abi/MatrixProduct.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace mgpu::kernels {

/// The product to ask the library for; nothing where the kernel is no such
/// product, or of types that are left to it. The kernel's entry says what it
/// computes, in #mgpu.sparse_product (dialect/conversion/gpu/SparseLibrary.h).
std::optional<SparseProduct> librarySparse(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_LIBRARYSPARSE_H
