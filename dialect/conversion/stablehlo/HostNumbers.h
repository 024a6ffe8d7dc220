// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_HOSTNUMBERS_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_HOSTNUMBERS_H

// Which of the values that a loop carries are integers that host code knows.

#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

class HostNumbers {
public:
  /// The initial values of `loop` must be lowered.
  HostNumbers(const Lowering &low, stablehlo::WhileOp loop);

  bool isNumber(unsigned carried) const { return kept[carried]; }
  /// Whether the condition is one.
  bool decides() const { return isDecided; }

private:
  llvm::SmallVector<bool> keptOf(stablehlo::WhileOp loop,
                                 llvm::SmallVector<bool> kept);
  bool isNumber(mlir::Value value);

  const Lowering &low;
  llvm::DenseMap<mlir::Value, bool> known; ///< arguments and results of loops
  llvm::SmallVector<bool> kept;
  bool isDecided = false;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_HOSTNUMBERS_H
