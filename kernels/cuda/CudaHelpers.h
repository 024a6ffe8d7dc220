// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_CUDAHELPERS_H
#define MGPU_KERNELS_CUDA_CUDAHELPERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <set>
#include <string>

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

/// The functions and types emitted code may use, by name: a kernel's text
/// begins with those it does.
class Helpers {
public:
  /// Notes that the helper is used, and those it uses.
  void use(llvm::StringRef name);
  /// Their text, in an order in which each is declared before its use.
  std::string text() const;

private:
  std::set<size_t> used;
};

/// Every function and type that a helper's text declares.
const llvm::StringSet<> &helperNames();

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_CUDAHELPERS_H
