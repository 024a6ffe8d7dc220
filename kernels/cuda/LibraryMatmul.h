// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_LIBRARYMATMUL_H
#define MGPU_KERNELS_CUDA_LIBRARYMATMUL_H

// Matrix products that a library (cuBLASLt) can compute in a kernel's place. It
// adds in an order of its own: the bits are the body's only where all sums are
// exact.

#include "kernels/abi/MatrixProduct.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mgpu::kernels {

/// The type of numbers that CUDA's libraries multiply; none where it is not
/// f16, bf16, f32 or f64.
std::optional<ElementType> libraryType(mlir::Type type);

/// Why the library is not asked; empty where it may be. "-" for a kernel that
/// is not a matrix product of f16, bf16, f32 or f64.
std::string libraryMatmulRefusal(mlir::ModuleOp kernel);

/// What to ask it for.
MatrixProduct libraryMatmul(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_LIBRARYMATMUL_H
