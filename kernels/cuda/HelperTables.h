// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_HELPERTABLES_H
#define MGPU_KERNELS_CUDA_HELPERTABLES_H

#include "llvm/ADT/ArrayRef.h"

namespace mgpu::kernels::cuda {

/// A function or type that emitted code may use (CudaHelpers.h).
struct Helper {
  const char *name;
  const char *uses; ///< names of earlier ones, separated by blanks
  const char *text;
};

// In the order of these tables, each helper before those that use it.
llvm::ArrayRef<Helper> numberHelpers();
llvm::ArrayRef<Helper> accessHelpers();
llvm::ArrayRef<Helper> mathHelpers();
llvm::ArrayRef<Helper> threadHelpers();
/// Tensor cores, and what feeds them. Each instruction is a function of its
/// own, which a test that has no GPU replaces by defining MGPU_MMA and
/// functions of the same names.
llvm::ArrayRef<Helper> matrixHelpers();

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_HELPERTABLES_H
