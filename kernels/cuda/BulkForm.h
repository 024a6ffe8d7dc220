// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_BULKFORM_H
#define MGPU_KERNELS_CUDA_BULKFORM_H

// Which of a kernel's barriers in memory, tensor copies and products of
// warpgroups are instructions in its text: all of them or none, as a barrier
// counts the bytes of the copies. The text has what they mean, too, for GPUs
// before sm_90, and for configurations whose blocks are several of the source.

#include "kernels/abi/KernelImage.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <set>
#include <string>
#include <vector>

namespace mgpu::kernels::cuda {

/// The product of a warpgroup: the sums of each thread lie in memory of its
/// own, 64 rows after 64 rows.
struct WarpgroupProduct {
  mlir::Value sums, left, right; ///< memrefs
  int64_t rows, columns;
  std::string type; ///< of the factors: "f16" or "bf16"
};

struct BulkForm {
  /// By the name of a tensor map in the kernel: which of `maps` it is.
  llvm::DenseMap<mlir::Value, size_t> mapOf;
  /// Each is a parameter of its own, behind the others.
  std::vector<TensorMap> maps;
  /// The operation of the entry's block in or at which the last barrier is
  /// made: behind it all threads see them.
  mlir::Operation *lastMaking = nullptr;
  llvm::DenseMap<mlir::Operation *, WarpgroupProduct> products; ///< by loop
  /// The types and columns that products have.
  std::set<std::pair<std::string, unsigned>> productForms;
  bool stores = false; ///< what all threads wrote, by one of them

  bool isEmpty() const {
    return !lastMaking && maps.empty() && products.empty();
  }
};

/// Empty where the kernel has none of them, or one that is no instruction.
/// `alignment` divides the addresses of all buffers.
BulkForm bulkFormOf(mlir::func::FuncOp entry, uint32_t alignment,
                    uint64_t threads);

/// How many bytes of dynamic workgroup memory a text asks for in addition, to
/// begin where the patterns of swizzled rows do.
inline constexpr uint32_t swizzlePattern = 1024;

/// The functions and macros that the instructions are written with.
std::string bulkHelpers(const BulkForm &form);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_BULKFORM_H
