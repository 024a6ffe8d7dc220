// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/AffineEvaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mgpu::facts {

// A sum that may leave its type wraps, and is then no longer affine. Forms of
// 64 bits are kept well inside int64_t, so that they can be added.
bool AffineEvaluator::fits(const AffineForm &form, mlir::Type type) const {
  auto integer = mlir::dyn_cast<mlir::IntegerType>(type);
  return fitsBits(form, 1, integer ? std::min(integer.getWidth(), 48u) : 48u);
}

std::optional<AffineForm> AffineEvaluator::evaluate(mlir::Value value) {
  auto at = known.find(value);
  if (at != known.end())
    return at->second;
  std::optional<AffineForm> form = compute(value);
  if (form && !fits(*form, value.getType()))
    form = std::nullopt;
  known[value] = form;
  return form;
}

std::optional<AffineForm> AffineEvaluator::compute(mlir::Value value) {
  mlir::Region *home = value.getParentRegion();
  if (!body.isAncestor(home)) {
    if (auto integer = mlir::dyn_cast_or_null<mlir::IntegerAttr>(
            constantOf ? constantOf(value) : mlir::Attribute()))
      return AffineForm{integer.getValue().getSExtValue(), {}};
    return std::nullopt;
  }
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
    return ofLoopCounter(argument);
  return ofOperation(value.getDefiningOp());
}

std::optional<AffineForm>
AffineEvaluator::ofLoopCounter(mlir::BlockArgument argument) {
  auto loop =
      mlir::dyn_cast<mlir::scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop || argument != loop.getInductionVar() || loop.getUnsignedCmp())
    return std::nullopt;
  auto lower = evaluate(loop.getLowerBound());
  auto upper = evaluate(loop.getUpperBound());
  auto step = evaluate(loop.getStep());
  if (!lower || !upper || !step || !upper->isConstant() ||
      !step->isConstant() || step->constant <= 0 || !lower->isConstant())
    return std::nullopt;
  int64_t trips =
      (upper->constant - lower->constant + step->constant - 1) / step->constant;
  if (trips <= 0) // never runs: there is no value to speak of
    return std::nullopt;
  AffineForm form = *lower;
  if (trips > 1)
    form.terms.push_back({addCounter(trips), step->constant});
  return form;
}

/// The divisor, where the operation's result is a quotient or a remainder of
/// its first operand, of what is not negative.
static std::optional<int64_t> divisorOf(mlir::Operation *op) {
  using namespace mlir;
  constexpr unsigned mostBits = 30;
  llvm::APInt by;
  if (op->getNumOperands() != 2 ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&by)) ||
      by.getSignificantBits() > mostBits)
    return std::nullopt;
  const int64_t value = by.getSExtValue();
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::RemUIOp,
          arith::RemSIOp>(op) &&
      value > 0)
    return value;
  if (isa<arith::ShRUIOp, arith::ShRSIOp>(op) && value >= 0 && value < mostBits)
    return int64_t(1) << value;
  // A mask of the lowest bits.
  if (isa<arith::AndIOp>(op) && value >= 0 && (value & (value + 1)) == 0)
    return value + 1;
  return std::nullopt;
}

std::optional<AffineForm> AffineEvaluator::ofDivision(mlir::Operation *op) {
  using namespace mlir;
  const auto divisor = divisorOf(op);
  if (!divisor)
    return std::nullopt;
  auto form = evaluate(op->getOperand(0));
  if (!form || range(*form).first < 0)
    return std::nullopt;
  Division division = divide(std::move(*form), *divisor);
  return isa<arith::RemUIOp, arith::RemSIOp, arith::AndIOp>(op)
             ? division.remainder
             : division.quotient;
}

AffineEvaluator::Division AffineEvaluator::divide(AffineForm form,
                                                  int64_t divisor) {
  // Multiples of the divisor go into the quotient as they are.
  Division out;
  AffineForm rest;
  for (auto [counter, coefficient] : form.terms)
    (coefficient % divisor == 0 ? out.quotient : rest)
        .terms.push_back({counter, coefficient % divisor == 0
                                       ? coefficient / divisor
                                       : coefficient});
  rest.constant = form.constant;
  const int64_t whole = llvm::divideFloorSigned(range(rest).first, divisor);
  rest.constant -= whole * divisor;
  out.quotient.constant = whole;
  // The smallest quotient of the rest is 0.
  const int64_t high = range(rest).second;
  if (high < divisor) {
    out.remainder = std::move(rest);
    return out;
  }
  std::vector<std::pair<uint32_t, int64_t>> terms = rest.terms;
  llvm::sort(terms);
  auto [at, isNew] =
      divisions.try_emplace({std::move(terms), {rest.constant, divisor}});
  Division &known = at->second;
  if (isNew) {
    const uint32_t quotient = addCounter(high / divisor + 1);
    const uint32_t remainder = addCounter(divisor);
    known.quotient.terms.push_back({quotient, 1});
    known.remainder.terms.push_back({remainder, 1});
    rest.add(known.quotient, -divisor);
    rest.add(known.remainder, -1);
    ties[quotient] = ties[remainder] = std::move(rest);
  }
  out.quotient.add(known.quotient);
  out.remainder = known.remainder;
  return out;
}

std::optional<AffineForm> AffineEvaluator::ofLaunch(mlir::Operation *op) {
  using namespace mlir;
  auto counter = [&](gpu::Dimension axis, uint32_t base) {
    AffineForm form;
    uint32_t index = base + uint32_t(axis);
    if (sizes[index] > 1)
      form.terms.push_back({index, 1});
    return form;
  };
  auto size = [&](gpu::Dimension axis, uint32_t base) {
    return sizes[base + uint32_t(axis)];
  };
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return counter(id.getDimension(), 0);
  if (isa<gpu::BlockIdOp, gpu::GlobalIdOp, gpu::GridDimOp>(op) &&
      sizes[firstBlockCounter] == 0)
    return std::nullopt;
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return counter(id.getDimension(), firstBlockCounter);
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    AffineForm form = counter(id.getDimension(), 0);
    form.add(counter(id.getDimension(), firstBlockCounter),
             size(id.getDimension(), 0));
    return form;
  }
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return AffineForm{size(dim.getDimension(), 0), {}};
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return AffineForm{size(dim.getDimension(), firstBlockCounter), {}};
  constexpr int64_t lanes = 32;
  if (isa<gpu::SubgroupSizeOp>(op))
    return AffineForm{lanes, {}};
  if (isa<gpu::NumSubgroupsOp>(op))
    return AffineForm{
        llvm::divideCeilSigned(sizes[0] * sizes[1] * sizes[2], lanes), {}};
  if (!isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op))
    return std::nullopt;
  AffineForm thread = counter(gpu::Dimension::x, 0);
  thread.add(counter(gpu::Dimension::y, 0), sizes[0]);
  thread.add(counter(gpu::Dimension::z, 0), sizes[0] * sizes[1]);
  const auto division = divide(std::move(thread), lanes);
  return isa<gpu::LaneIdOp>(op) ? division.remainder : division.quotient;
}

std::optional<AffineForm> AffineEvaluator::ofOperation(mlir::Operation *op) {
  using namespace mlir;
  llvm::APInt constant;
  if (op->getNumResults() == 1 &&
      matchPattern(op->getResult(0), m_ConstantInt(&constant)))
    return AffineForm{constant.getSExtValue(), {}};
  if (isa<gpu::GPUDialect>(op->getDialect()))
    return ofLaunch(op);
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return evaluate(op->getOperand(0));
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
    auto form = evaluate(op->getOperand(0));
    return form && range(*form).first >= 0 ? form : std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return ofDivision(op);
  auto left = evaluate(op->getOperand(0));
  auto right = evaluate(op->getOperand(1));
  if (!left || !right)
    return std::nullopt;
  if (isa<arith::MulIOp>(op)) {
    if (!left->isConstant())
      std::swap(left, right);
    // A product past int64_t must not wrap into range.
    if (!left->isConstant() || !fitsBits(*right, left->constant, 64))
      return std::nullopt;
    AffineForm product;
    product.add(*right, left->constant);
    return product;
  }
  left->add(*right, isa<arith::SubIOp>(op) ? -1 : 1);
  return left;
}

} // namespace mgpu::facts
