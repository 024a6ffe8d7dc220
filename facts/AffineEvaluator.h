// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_AFFINEEVALUATOR_H
#define MGPU_FACTS_AFFINEEVALUATOR_H

// Which values of a kernel body are affine in its ids and loop counters.

#include "planner/dag/AffineForm.h"

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace mgpu::facts {

using planner::AffineForm, planner::AffineCounters;

/// Evaluates index values of one kernel body; memoised.
class AffineEvaluator : public AffineCounters {
public:
  /// The constant that a value defined outside of the body is; null where it is
  /// none.
  using ConstantOf = std::function<mlir::Attribute(mlir::Value)>;
  /// A grid of 0 blocks is one that is not known.
  AffineEvaluator(mlir::Region &body, Dim3 grid, Dim3 block,
                  ConstantOf constantOf = {})
      : AffineCounters(grid, block), body(body),
        constantOf(std::move(constantOf)) {}

  /// None when the value is not affine in the counters.
  std::optional<AffineForm> evaluate(mlir::Value value);

private:
  std::optional<AffineForm> compute(mlir::Value value);
  bool fits(const AffineForm &form, mlir::Type type) const;
  std::optional<AffineForm> ofLoopCounter(mlir::BlockArgument argument);
  std::optional<AffineForm> ofOperation(mlir::Operation *op);
  /// An id, or a size of the launch.
  std::optional<AffineForm> ofLaunch(mlir::Operation *op);
  std::optional<AffineForm> ofDivision(mlir::Operation *op);
  /// divisor * quotient + remainder
  struct Division {
    AffineForm quotient, remainder;
  };
  /// `form` is not negative.
  Division divide(AffineForm form, int64_t divisor);

  mlir::Region &body;
  ConstantOf constantOf;
  llvm::DenseMap<mlir::Value, std::optional<AffineForm>> known;
  /// Each division once. The key is the dividend, less multiples of the
  /// divisor, and the divisor.
  std::map<std::pair<std::vector<std::pair<uint32_t, int64_t>>,
                     std::pair<int64_t, int64_t>>,
           Division>
      divisions;
};

} // namespace mgpu::facts

#endif // MGPU_FACTS_AFFINEEVALUATOR_H
