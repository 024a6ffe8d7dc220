// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_LIBRARYMATMUL_H
#define MGPU_KERNELS_CUDA_LIBRARYMATMUL_H

// Matrix products that a library (cuBLASLt) can compute in a kernel's place. It
// adds in an order of its own: the bits are the body's only where all sums are
// exact.

#include "kernels/abi/MatrixProduct.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mgpu::kernels {

/// Why the library is not asked; empty where it may be. "-" for a kernel that
/// is not a matrix product of f16, bf16, f32 or f64.
std::string libraryMatmulRefusal(mlir::ModuleOp kernel);

/// What to ask it for.
MatrixProduct libraryMatmul(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_LIBRARYMATMUL_H
