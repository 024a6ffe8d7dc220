// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_PARTTEXT_H
#define MGPU_KERNELS_CUDA_PARTTEXT_H

// Writes a part of a kernel as a function that a text made of a template calls
// (kernels/lower/ProductParts.h, AttentionParts.h).

#include "kernels/cuda/SourceText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels::cuda {

struct KernelContext;

/// The kernel whose part it is.
struct PartOf {
  mlir::func::FuncOp entry;
  const std::vector<std::string> &arguments; ///< the names, by position
  /// The types of the arguments that parts use; the part adds its own.
  std::vector<std::string> &types;
};

/// Writes a device function with this beginning ("float f") and these last
/// parameters. Before them are the arguments of the entry that the part uses,
/// and then its others. Returns the text that gives a call the former, each
/// with a comma behind it: "x, y + 4LL, ".
mlir::FailureOr<std::string> writePart(mlir::func::FuncOp part, PartOf of,
                                       const std::string &beginning,
                                       const std::string &ids,
                                       KernelContext &context, Text &out);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_PARTTEXT_H
