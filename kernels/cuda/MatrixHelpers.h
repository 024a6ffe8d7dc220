// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_MATRIXHELPERS_H
#define MGPU_KERNELS_CUDA_MATRIXHELPERS_H

#include <cstddef>

namespace mgpu::kernels::cuda {

/// A function or type that emitted code may use (CudaHelpers.h).
struct Helper {
  const char *name;
  const char *uses; ///< names of earlier ones, separated by blanks
  const char *text;
};

/// Tensor cores, and what feeds them: they come after all other helpers. Each
/// instruction is a function of its own, which a test that has no GPU replaces
/// by defining MGPU_MMA and functions of the same names.
constexpr size_t numMatrixHelpers = 19;
extern const Helper matrixHelpers[numMatrixHelpers];

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_MATRIXHELPERS_H
