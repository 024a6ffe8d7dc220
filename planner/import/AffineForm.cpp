// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/AffineForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mgpu::planner {

void AffineForm::add(const AffineForm &other, int64_t factor) {
  constant += factor * other.constant;
  for (auto [counter, coefficient] : other.terms) {
    auto at = llvm::find_if(
        terms, [&, c = counter](const auto &term) { return term.first == c; });
    if (at == terms.end())
      terms.push_back({counter, factor * coefficient});
    else
      at->second += factor * coefficient;
  }
  llvm::erase_if(terms, [](const auto &term) { return term.second == 0; });
}

static uint32_t component(Dim3 dims, mlir::gpu::Dimension axis) {
  switch (axis) {
  case mlir::gpu::Dimension::x:
    return dims.x;
  case mlir::gpu::Dimension::y:
    return dims.y;
  case mlir::gpu::Dimension::z:
    return dims.z;
  }
  return 1;
}

// Counters 0..2 are thread_id x, y, z; 3..5 block_id.
static constexpr uint32_t firstBlockCounter = 3;

AffineEvaluator::AffineEvaluator(
    mlir::Region &body, Dim3 grid, Dim3 block,
    llvm::function_ref<HostValue(mlir::Value)> valueOf)
    : body(body), grid(grid), block(block),
      valueOf(valueOf), sizes{block.x, block.y, block.z,
                              grid.x,  grid.y,  grid.z} {}

std::optional<unsigned> AffineEvaluator::threadAxisOf(uint32_t counter) {
  return counter < firstBlockCounter ? std::optional(counter) : std::nullopt;
}

std::optional<unsigned> AffineEvaluator::blockAxisOf(uint32_t counter) {
  if (counter < firstBlockCounter || counter >= firstBlockCounter + 3)
    return std::nullopt;
  return counter - firstBlockCounter;
}

uint32_t AffineEvaluator::addCounter(int64_t size) {
  sizes.push_back(size);
  return uint32_t(sizes.size() - 1);
}

const AffineForm *AffineEvaluator::tieOf(uint32_t counter) const {
  auto at = ties.find(counter);
  return at == ties.end() ? nullptr : &at->second;
}

bool AffineEvaluator::isFree(const AffineForm &form) const {
  return llvm::none_of(
      form.terms, [&](const auto &term) { return ties.contains(term.first); });
}

std::pair<int64_t, int64_t>
AffineEvaluator::range(const AffineForm &form) const {
  int64_t low = form.constant, high = form.constant;
  for (auto [counter, coefficient] : form.terms) {
    int64_t reach = coefficient * (sizes[counter] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

bool AffineEvaluator::isOfIds(const AffineForm &form) const {
  return llvm::all_of(form.terms, [&](const auto &term) {
    const AffineForm *tie = tieOf(term.first);
    if (!tie)
      return term.first < 2 * firstBlockCounter;
    AffineForm rest = *tie;
    rest.terms.pop_back_n(2); // the quotient and the remainder
    return isOfIds(rest);
  });
}

int64_t AffineEvaluator::valueAt(const AffineForm &form,
                                 llvm::ArrayRef<int64_t> ids) const {
  auto counterAt = [&](uint32_t counter) -> int64_t {
    if (counter < ids.size())
      return ids[counter];
    const AffineForm *tie = tieOf(counter);
    if (!tie)
      return 0;
    // divide() puts -divisor * quotient and then -remainder behind the rest.
    AffineForm rest = *tie;
    const uint32_t remainder = rest.terms.pop_back_val().first;
    const int64_t divisor = -rest.terms.pop_back_val().second;
    const int64_t value = valueAt(rest, ids);
    return counter == remainder ? value % divisor : value / divisor;
  };
  int64_t sum = form.constant;
  for (auto [counter, coefficient] : form.terms)
    sum += coefficient * counterAt(counter);
  return sum;
}

/// Whether every value of factor * form, and so each of its parts, is of
/// `width` bits.
static bool fitsBits(const AffineForm &form, int64_t factor, unsigned width,
                     const std::vector<int64_t> &sizes) {
  __int128 low = __int128(form.constant) * factor, high = low;
  for (auto [counter, coefficient] : form.terms) {
    __int128 scaled = __int128(coefficient) * factor;
    if (scaled != int64_t(scaled))
      return false;
    __int128 reach = scaled * (sizes[counter] - 1);
    (reach < 0 ? low : high) += reach;
  }
  __int128 limit = __int128(1) << (width - 1);
  return low >= -limit && high < limit;
}

// A sum that may leave its type wraps, and is then no longer affine. Forms of
// 64 bits are kept well inside int64_t, so that they can be added.
bool AffineEvaluator::fits(const AffineForm &form, mlir::Type type) const {
  auto integer = mlir::dyn_cast<mlir::IntegerType>(type);
  return fitsBits(form, 1, integer ? std::min(integer.getWidth(), 48u) : 48u,
                  sizes);
}

bool AffineEvaluator::addScaled(AffineForm &sum, const AffineForm &form,
                                int64_t factor) const {
  constexpr unsigned addressBits = 59;
  if (!fitsBits(form, factor, addressBits, sizes))
    return false;
  sum.add(form, factor);
  return fitsBits(sum, 1, addressBits, sizes);
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
    HostValue outer = valueOf(value);
    if (auto *attribute = std::get_if<mlir::Attribute>(&outer))
      if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(*attribute))
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
  std::vector<std::pair<uint32_t, int64_t>> terms(rest.terms.begin(),
                                                  rest.terms.end());
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

std::optional<AffineForm> AffineEvaluator::ofOperation(mlir::Operation *op) {
  using namespace mlir;
  llvm::APInt constant;
  if (op->getNumResults() == 1 &&
      matchPattern(op->getResult(0), m_ConstantInt(&constant)))
    return AffineForm{constant.getSExtValue(), {}};

  auto counter = [&](gpu::Dimension axis, uint32_t base) {
    AffineForm form;
    uint32_t index = base + uint32_t(axis);
    if (sizes[index] > 1)
      form.terms.push_back({index, 1});
    return form;
  };
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return counter(id.getDimension(), 0);
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return counter(id.getDimension(), firstBlockCounter);
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    AffineForm form = counter(id.getDimension(), 0);
    form.add(counter(id.getDimension(), firstBlockCounter),
             component(block, id.getDimension()));
    return form;
  }
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return AffineForm{component(block, dim.getDimension()), {}};
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return AffineForm{component(grid, dim.getDimension()), {}};
  if (isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op)) {
    constexpr int64_t lanes = 32;
    AffineForm thread = counter(gpu::Dimension::x, 0);
    thread.add(counter(gpu::Dimension::y, 0), block.x);
    thread.add(counter(gpu::Dimension::z, 0), int64_t(block.x) * block.y);
    const auto division = divide(std::move(thread), lanes);
    return isa<gpu::LaneIdOp>(op) ? division.remainder : division.quotient;
  }
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
    if (!left->isConstant())
      return std::nullopt;
    // Below 2^47 each; a product past int64_t must not wrap into range.
    if (__int128 size = __int128(left->constant) * right->constant;
        size != int64_t(size) ||
        llvm::any_of(right->terms, [&](const auto &term) {
          __int128 scaled = __int128(left->constant) * term.second;
          return scaled != int64_t(scaled);
        }))
      return std::nullopt;
    AffineForm product;
    product.add(*right, left->constant);
    return product;
  }
  left->add(*right, isa<arith::SubIOp>(op) ? -1 : 1);
  return left;
}

} // namespace mgpu::planner
