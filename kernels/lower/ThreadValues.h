// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_THREADVALUES_H
#define MGPU_KERNELS_LOWER_THREADVALUES_H

#include "support/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <vector>

namespace mgpu::kernels {

/// What values of a kernel are in each thread of its block, where they follow
/// from the thread's place in the block and from constants alone.
class ThreadValues {
public:
  explicit ThreadValues(Dim3 block) : block(block) {}

  /// The value in each thread, in order of their numbers in the block; empty
  /// if it depends on anything else.
  const std::vector<mlir::Attribute> &of(mlir::Value value);

private:
  std::vector<mlir::Attribute> find(mlir::Value value);

  Dim3 block;
  /// References stay valid when further values are computed.
  llvm::DenseMap<mlir::Value, std::unique_ptr<std::vector<mlir::Attribute>>>
      known;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_THREADVALUES_H
