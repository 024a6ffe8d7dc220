// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_FACTORRULE_H
#define MGPU_DIALECT_CONVERSION_SPMD_FACTORRULE_H

// Which dimensions of the tensors of one operation are cut together.

#include "dialect/mgpu/MgpuDialect.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mgpu::conversion {

/// One index of an operation, as `k` is in c[m,n] += a[m,k] * b[k,n].
struct Factor {
  int64_t size = 1;
  /// How partial results are combined where devices have parts of this index;
  /// nothing where no result has it and it cannot be cut.
  std::optional<ir::ReductionKind> reduction;
  bool isReduced = false; ///< no result has it
};

/// A dimension that a factor's index i reads or writes from offset + i * stride
/// on, and `reach` elements more. Elements before the first and behind the last
/// go with these.
struct Window {
  int64_t offset = 0, stride = 1, reach = 0;
};

/// A tensor of the operation: by dimension, the factors it is made of, the
/// outermost first. A dimension without factors is not cut.
struct FactorTensor {
  mlir::Value value;
  llvm::SmallVector<llvm::SmallVector<unsigned, 1>> dims;
  /// By dimension, where its one factor is not its index.
  llvm::SmallVector<std::pair<unsigned, Window>, 1> windows = {};

  /// Null for a dimension that has none.
  const Window *windowOf(unsigned dim) const {
    for (const auto &[at, window] : windows)
      if (at == dim)
        return &window;
    return nullptr;
  }
};

/// The factors of an operation, as an einsum has them. Operands and results
/// that are not listed are whole on each device.
struct FactorRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<FactorTensor> operands;
  llvm::SmallVector<FactorTensor> results;

  unsigned add(int64_t size) {
    factors.push_back({size, std::nullopt, false});
    return factors.size() - 1;
  }
};

/// The rule of `op`: of linalg operations by their indexing maps, of reshapes
/// and concatenations by the dimensions they leave whole, of slices and pads by
/// what they take of each. Empty where nothing is known of the operation.
FactorRule factorRuleOf(mlir::Operation *op);

/// All of `operands` and `results` are cut alike.
FactorRule sameRule(mlir::ValueRange operands, mlir::ValueRange results);

/// The value that leaves a reduction as it is; null where `op` reduces by
/// something else than one of ReductionKind.
struct Combiner {
  ir::ReductionKind kind;
  mlir::Operation *op; ///< in the body
};
std::optional<Combiner> combinerOf(mlir::Operation *linalgOp, unsigned init);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_FACTORRULE_H
