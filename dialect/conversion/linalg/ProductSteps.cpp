// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/ProductSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

struct Step {
  arith::MulFOp product;
  arith::AddFOp sum;
  unsigned addend; ///< the sum's other operand
};

/// The step whose result `value` is, if it adds a product that nothing else
/// needs, in f32 or f64.
std::optional<Step> stepOf(Value value) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum || !(sum.getType().isF32() || sum.getType().isF64()))
    return std::nullopt;
  for (unsigned k : {1u, 0u})
    if (auto product = sum->getOperand(k).getDefiningOp<arith::MulFOp>())
      if (product->hasOneUse())
        return Step{product, sum, 1 - k};
  return std::nullopt;
}

constexpr auto contract = arith::FastMathFlags::contract;

} // namespace

void markProduct(linalg::LinalgOp op) {
  if (isa<linalg::GenericOp, linalg::ReduceOp>(op) ||
      op.getNumReductionLoops() == 0)
    return;
  for (Value result : op.getBlock()->getTerminator()->getOperands())
    if (auto step = stepOf(result)) {
      step->product.setFastmath(step->product.getFastmath() | contract);
      step->sum.setFastmath(step->sum.getFastmath() | contract);
    }
}

void addByFma(OpBuilder &b, MutableArrayRef<Value> results) {
  for (Value &result : results) {
    auto step = stepOf(result);
    if (!step || !bitEnumContainsAll(step->product.getFastmath(), contract) ||
        !bitEnumContainsAll(step->sum.getFastmath(), contract))
      continue;
    result = math::FmaOp::create(
        b, step->sum.getLoc(), step->product.getLhs(), step->product.getRhs(),
        step->sum->getOperand(step->addend),
        result.getType().isF64() ? contract : arith::FastMathFlags::none);
    step->sum->erase();
    step->product->erase();
  }
}

} // namespace mgpu::conversion
