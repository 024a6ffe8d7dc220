// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/FlopCounter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"

namespace mgpu::planner {

using namespace mlir;

double FlopCounter::of(Operation *op) {
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    Operation *callee = call.resolveCallable();
    if (!callee)
      return 0;
    // A function that calls itself is refused elsewhere.
    auto [at, isNew] = callees.try_emplace(callee, 0);
    if (!isNew)
      return at->second;
    double sum = 0;
    callee->walk(
        [&](Operation *inner) { sum += inner == callee ? 0 : of(inner); });
    return callees[callee] = sum;
  }
  if (auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op)) {
    constexpr double lanes = 32; // that do it together
    auto a = cast<gpu::MMAMatrixType>(product.getOpA().getType());
    auto c = cast<gpu::MMAMatrixType>(product.getOpC().getType());
    return 2 * double(a.getShape()[1]) * double(c.getShape()[0]) *
           double(c.getShape()[1]) / lanes;
  }
  if (auto reduction = dyn_cast<vector::ReductionOp>(op)) {
    const bool isSum = reduction.getKind() == vector::CombiningKind::ADD ||
                       reduction.getKind() == vector::CombiningKind::MUL;
    const auto length =
        double(reduction.getSourceVectorType().getNumElements());
    return isSum && isa<FloatType>(reduction.getType())
               ? length - (reduction.getAcc() ? 0 : 1)
               : 0;
  }
  const bool isFused = isa<math::FmaOp, vector::FMAOp>(op);
  if (!isFused &&
      !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
    return 0;
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  return (isFused ? 2 : 1) * (vector ? double(vector.getNumElements()) : 1);
}

} // namespace mgpu::planner
