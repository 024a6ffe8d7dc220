// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/stablehlo/Comparators.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

using Direction = ComparisonDirection;

bool isPlainFloat(CompareOp op) {
  return isa<FloatType>(getElementTypeOrSelf(op.getLhs().getType())) &&
         op.getCompareType() != ComparisonType::TOTALORDER;
}

class OrderProof {
public:
  explicit OrderProof(Block &comparator) : comparator(comparator) {}

  bool orders(Value value);
  /// Plain comparisons of floats that decide.
  SmallVector<CompareOp> ofFloats;

private:
  bool mirrors(Value x, Value y, unsigned side);
  CompareOp comparison(Value value, ArrayRef<Direction> directions);
  bool refines(Value first, Value equal, Value next);

  Block &comparator;
};

/// Whether `x` is computed of one element, that of `side`, as `y` of the other.
bool OrderProof::mirrors(Value x, Value y, unsigned side) {
  auto argument = dyn_cast<BlockArgument>(x);
  if (argument && argument.getOwner() == &comparator) {
    auto other = dyn_cast<BlockArgument>(y);
    return argument.getArgNumber() % 2 == side && other &&
           other.getOwner() == &comparator &&
           other.getArgNumber() == (argument.getArgNumber() ^ 1u);
  }
  Operation *left = x.getDefiningOp(), *right = y.getDefiningOp();
  if (!left || !right || left->getBlock() != &comparator)
    return x == y;
  if (left->getName() != right->getName() ||
      left->getAttrDictionary() != right->getAttrDictionary() ||
      x.getType() != y.getType() ||
      left->getNumOperands() != right->getNumOperands())
    return false;
  return llvm::all_of(
      llvm::zip(left->getOperands(), right->getOperands()), [&](auto pair) {
        return mirrors(std::get<0>(pair), std::get<1>(pair), side);
      });
}

/// The comparison of a key of both elements that `value` is; null for another.
CompareOp OrderProof::comparison(Value value, ArrayRef<Direction> directions) {
  auto op = value.getDefiningOp<CompareOp>();
  if (!op || op->getBlock() != &comparator ||
      !llvm::is_contained(directions, op.getComparisonDirection()) ||
      (!mirrors(op.getLhs(), op.getRhs(), 0) &&
       !mirrors(op.getLhs(), op.getRhs(), 1)))
    return {};
  return op;
}

/// Whether `first` orders by a key and `next` those whose keys are `equal`.
bool OrderProof::refines(Value first, Value equal, Value next) {
  CompareOp less = comparison(first, {Direction::LT, Direction::GT});
  CompareOp same = comparison(equal, {Direction::EQ});
  if (!less || !same || less.getCompareType() != same.getCompareType())
    return false;
  const bool isOfOneKey =
      (less.getLhs() == same.getLhs() && less.getRhs() == same.getRhs()) ||
      (less.getLhs() == same.getRhs() && less.getRhs() == same.getLhs());
  return isOfOneKey && orders(first) && orders(next);
}

bool OrderProof::orders(Value value) {
  if (CompareOp less = comparison(value, {Direction::LT, Direction::GT})) {
    if (isPlainFloat(less) && !llvm::is_contained(ofFloats, less))
      ofFloats.push_back(less);
    return true;
  }
  if (auto either = value.getDefiningOp<OrOp>()) {
    for (auto [first, rest] : {std::pair(either.getLhs(), either.getRhs()),
                               std::pair(either.getRhs(), either.getLhs())})
      if (auto both = rest.getDefiningOp<AndOp>())
        if (refines(first, both.getLhs(), both.getRhs()) ||
            refines(first, both.getRhs(), both.getLhs()))
          return true;
    return false;
  }
  auto choice = value.getDefiningOp<SelectOp>();
  return choice &&
         refines(choice.getOnFalse(), choice.getPred(), choice.getOnTrue());
}

/// `less`, or that the right one alone is NaN.
void putNanLast(CompareOp less) {
  OpBuilder b(less->getContext());
  b.setInsertionPointAfter(less);
  Location loc = less.getLoc();
  auto compare = [&](Value x, Direction direction) -> Value {
    auto op = cast<CompareOp>(b.clone(*less));
    op->setOperands({x, x});
    op.setComparisonDirection(direction);
    return op.getResult();
  };
  Value isNumber = compare(less.getLhs(), Direction::EQ);
  Value isNan = compare(less.getRhs(), Direction::NE);
  Type flag = less.getType();
  Value isLast = AndOp::create(b, loc, flag, isNumber, isNan);
  Value made = OrOp::create(b, loc, flag, less.getResult(), isLast);
  less.getResult().replaceUsesWithIf(made, [&](OpOperand &use) {
    return use.getOwner() != made.getDefiningOp();
  });
}

} // namespace

bool ordersAll(Block &comparator) {
  OrderProof proof(comparator);
  if (!proof.orders(comparator.getTerminator()->getOperand(0)))
    return false;
  for (CompareOp less : proof.ofFloats)
    putNanLast(less);
  return true;
}

} // namespace mgpu::conversion
