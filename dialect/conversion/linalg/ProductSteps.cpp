// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/ProductSteps.h"

#include "dialect/conversion/linalg/PointForm.h"

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

/// The loops that index the operand, where each of its dimensions has one of
/// its own; one bit each.
static std::optional<unsigned> loopsOf(linalg::LinalgOp op,
                                       OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation() ||
      !isa<MemRefType>(operand.get().getType()))
    return std::nullopt;
  unsigned loops = 0;
  for (AffineExpr each : map.getResults())
    loops |= 1u << cast<AffineDimExpr>(each).getPosition();
  return loops;
}

std::optional<linalg::ContractionDimensions>
skinnyProductOf(linalg::LinalgOp op) {
  if (op.hasDynamicShape() || op.getNumLoops() != 3)
    return std::nullopt;
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  if (parallel.size() != 2 || reductions.size() != 1 ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return std::nullopt;
  const SmallVector<int64_t> extents = loopRangesOf(op);
  if (extents[parallel[0]] > extents[parallel[1]])
    std::swap(parallel[0], parallel[1]);
  OpOperand *left = op.getDpsInputOperand(0), *right = op.getDpsInputOperand(1),
            *sums = op.getDpsInitOperand(0);
  if (extents[parallel[0]] > mostVectorsOf(getElementTypeOrSelf(left->get())) ||
      extents[parallel[1]] * extents[reductions[0]] < leastMatrix ||
      !hasPointForm(op) || op.hasIndexSemantics() ||
      !memrefsReadInBody(op).empty())
    return std::nullopt;
  const unsigned m = 1u << parallel[0], n = 1u << parallel[1],
                 k = 1u << reductions[0];
  const auto inLeft = loopsOf(op, *left), inRight = loopsOf(op, *right);
  const Type sum = getElementTypeOrSelf(sums->get());
  if (!((inLeft == (m | k) && inRight == (n | k)) ||
        (inLeft == (n | k) && inRight == (m | k))) ||
      loopsOf(op, *sums) != (m | n) || !sum.isIntOrFloat() ||
      sum.getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  return linalg::ContractionDimensions{
      {}, {parallel[0]}, {parallel[1]}, {reductions[0]}};
}

} // namespace mgpu::conversion
