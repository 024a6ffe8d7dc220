// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_CUDATEXT_H
#define MGPU_KERNELS_COMPILE_CUDATEXT_H

#include "planner/dag/KernelSpace.h"
#include "support/Result.h"
#include "support/Types.h"

#include <optional>
#include <string>

namespace mgpu::kernels {

/// A kernel as CUDA C++, and what a launcher must know of it.
struct CudaText {
  std::string name;   ///< of the entry function
  std::string source; ///< includes nothing
  std::string reason; ///< why the launch may, or may not, take another shape
  Dim3 block;
  bool reshapable = false;
  uint32_t dynamicSharedBytes = 0;
  /// Of the CUDA target; a bundle does not keep it.
  std::optional<planner::KernelSpace> space;
  bool operator==(const CudaText &) const = default;
};

/// All but the source and the space, on one line; parseFacts() reads it.
std::string factsText(const CudaText &kernel);
/// Invalid where factsText() would not have written it.
Result<CudaText> parseFacts(std::string_view facts);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_CUDATEXT_H
