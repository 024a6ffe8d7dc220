// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_CUDAHELPERS_H
#define MGPU_KERNELS_CUDA_CUDAHELPERS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <set>
#include <string>

namespace mgpu::kernels::cuda {

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
