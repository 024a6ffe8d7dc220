// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_INDEXRANGES_H
#define MGPU_KERNELS_CUDA_INDEXRANGES_H

#include "support/Types.h"

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace mgpu::kernels::cuda {

/// The ranges of a kernel's integer values, from MLIR's range analysis and the
/// sizes of the launch.
class IndexRanges {
public:
  /// Writes the bounds of ids into the module.
  static mlir::LogicalResult setBounds(mlir::ModuleOp module, Dim3 block,
                                       Dim3 maxGrid);
  explicit IndexRanges(mlir::ModuleOp module);

  struct Bounds {
    llvm::APInt low, high; ///< signed, both included
  };
  std::optional<Bounds> of(mlir::Value value) const;
  /// An index that is an int in C++. Values that cross functions are not.
  bool fitsInt(mlir::Value value) const;
  bool isNonNegative(mlir::Value value) const;
  /// Whether a sign b ('+', '-', '*') surely fits the operands' own width.
  bool cannotOverflow(mlir::Value a, mlir::Value b, char sign) const;

private:
  mutable mlir::DataFlowSolver solver;
};

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_INDEXRANGES_H
