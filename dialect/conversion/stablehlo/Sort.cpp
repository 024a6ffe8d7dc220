// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stable sorting by merging: in each round every element of the result finds,
// by bisection, which element of the two runs of its pair it is.
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

// Finds what comparators of sorts say of all elements.

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

/// Whether `comparator` is known to order all elements (a strict weak order):
/// it compares one key of both sides, or several, the first that differs. Where
/// it compares floats by LT or GT, it comes to put NaN last, of which these say
/// nothing.
static bool ordersAll(Block &comparator) {
  OrderProof proof(comparator);
  if (!proof.orders(comparator.getTerminator()->getOperand(0)))
    return false;
  for (CompareOp less : proof.ofFloats)
    putNanLast(less);
  return true;
}

namespace {

/// Whether elements `lhs` (one of each tensor) come before `rhs`.
using Comparator = llvm::function_ref<Value(
    ImplicitLocOpBuilder &, ArrayRef<Value> lhs, ArrayRef<Value> rhs)>;

/// Whether a comparator is known to order all elements: then each element finds
/// its source alone. Otherwise two might find the same one.
enum class Order { Known, Unknown };

class MergeRound {
public:
  MergeRound(Lowering &low, ValueRange from, unsigned dimension, int64_t run,
             Comparator before, Order order)
      : low(low), from(llvm::to_vector(from)), dimension(dimension), run(run),
        size(cast<RankedTensorType>(from[0].getType()).getDimSize(dimension)),
        before(before), order(order) {}

  SmallVector<Value> make();

private:
  using Builder = ImplicitLocOpBuilder;
  Value constant(Builder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// The elements at `at` of this row; beyond its end, those at its end.
  SmallVector<Value> elements(Builder &b, Value at) {
    SmallVector<Value> place = point;
    place[dimension] = arith::MinUIOp::create(b, at, constant(b, size - 1));
    return llvm::map_to_vector(from, [&](Value input) -> Value {
      return tensor::ExtractOp::create(b, input, place);
    });
  }
  /// Whether element `j` of the second run comes before element `i` of the
  /// first.
  Value isSecondBefore(Builder &b, Value i, Value j) {
    SmallVector<Value> first =
        elements(b, arith::AddIOp::create(b, firstBegin, i));
    SmallVector<Value> second =
        elements(b, arith::AddIOp::create(b, secondBegin, j));
    return before(b, second, first);
  }
  /// A place of a merged pair: its number, and how many elements before it are
  /// of the first run.
  struct Split {
    Value number, first;
  };
  Value fromFirst(Builder &b, Value number, Split lower, Split upper);
  std::pair<Split, Split> around(Builder &b, Value number);
  Value takesSecond(Builder &b, Value number, Value &i);
  SmallVector<Value> element(Builder &b);

  Lowering &low;
  SmallVector<Value> from;
  unsigned dimension;
  int64_t run, size;
  Comparator before;
  Order order;
  SmallVector<Value> point;
  Value firstBegin, secondBegin, firstSize, secondSize;
};

/// How many of the first `number` elements of a merged pair are of its first
/// run; `lower` and `upper` are places around `number`.
Value MergeRound::fromFirst(Builder &b, Value number, Split lower,
                            Split upper) {
  Value zero = constant(b, 0), one = constant(b, 1);
  // No more can be of the second run than before `upper`, of the first neither.
  Value others = arith::SubIOp::create(b, upper.number, upper.first);
  Value least = arith::MaxSIOp::create(
      b, lower.first, arith::SubIOp::create(b, number, others).getResult());
  Value most = arith::SubIOp::create(b, number, lower.number);
  most = arith::MinSIOp::create(b, arith::AddIOp::create(b, lower.first, most),
                                upper.first);
  int64_t steps = llvm::Log2_64_Ceil(run) + 1;
  auto loop = scf::ForOp::create(
      b, zero, constant(b, steps), one, ValueRange{least, most},
      [&](OpBuilder &nested, Location loc, Value, ValueRange bounds) {
        Builder inner(loc, nested);
        Value sum = arith::AddIOp::create(inner, bounds[0], bounds[1]);
        Value middle = arith::ShRUIOp::create(inner, sum, one);
        Value other = arith::SubIOp::create(
            inner, arith::SubIOp::create(inner, number, middle), one);
        Value isOpen = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt,
                                             bounds[0], bounds[1]);
        // `other` is at least 0 where the search is open.
        other = arith::SelectOp::create(inner, isOpen, other, zero);
        Value lessFirst = isSecondBefore(inner, middle, other);
        Value next = arith::AddIOp::create(inner, middle, one);
        Value from = arith::SelectOp::create(inner, lessFirst, bounds[0], next);
        Value to = arith::SelectOp::create(inner, lessFirst, middle, bounds[1]);
        scf::YieldOp::create(
            inner,
            ValueRange{arith::SelectOp::create(inner, isOpen, from, bounds[0]),
                       arith::SelectOp::create(inner, isOpen, to, bounds[1])});
      });
  return loop.getResult(0);
}

/// The places before and after element `number`, found by halving the pair: all
/// elements that go one way find the same place there, so that places are in
/// order, and no two elements have one source, whatever the comparator says.
std::pair<MergeRound::Split, MergeRound::Split>
MergeRound::around(Builder &b, Value number) {
  Value zero = constant(b, 0), one = constant(b, 1);
  Value all = arith::AddIOp::create(b, firstSize, secondSize);
  auto loop = scf::ForOp::create(
      b, zero, constant(b, llvm::Log2_64_Ceil(2 * run)), one,
      ValueRange{zero, zero, all, firstSize},
      [&](OpBuilder &nested, Location loc, Value, ValueRange in) {
        Builder inner(loc, nested);
        Value sum = arith::AddIOp::create(inner, in[0], in[2]);
        Value middle = arith::ShRUIOp::create(inner, sum, one);
        Value found = fromFirst(inner, middle, {in[0], in[1]}, {in[2], in[3]});
        Value isBefore = arith::CmpIOp::create(inner, arith::CmpIPredicate::ule,
                                               middle, number);
        auto choose = [&](Value yes, Value no) -> Value {
          return arith::SelectOp::create(inner, isBefore, yes, no);
        };
        // An interval of one element is left as it is.
        Value isOpen = arith::CmpIOp::create(
            inner, arith::CmpIPredicate::ult,
            arith::AddIOp::create(inner, in[0], one), in[2]);
        SmallVector<Value> next{choose(middle, in[0]), choose(found, in[1]),
                                choose(in[2], middle), choose(in[3], found)};
        for (auto [each, old] : llvm::zip(next, in))
          each = arith::SelectOp::create(inner, isOpen, each, old);
        scf::YieldOp::create(inner, next);
      });
  ValueRange made = loop.getResults();
  return {{made[0], made[1]}, {made[2], made[3]}};
}

/// Whether element `number` of a merged pair is of its second run; `i` is how
/// many elements before it are of the first.
Value MergeRound::takesSecond(Builder &b, Value number, Value &i) {
  if (order == Order::Unknown) {
    auto [place, next] = around(b, number);
    i = place.first;
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place.first,
                                 next.first);
  }
  Value zero = constant(b, 0);
  Value all = arith::AddIOp::create(b, firstSize, secondSize);
  i = fromFirst(b, number, {zero, zero}, {all, firstSize});
  Value j = arith::SubIOp::create(b, number, i);
  Value hasSecond =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, j, secondSize);
  Value noFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, i, firstSize);
  Value isBefore = arith::AndIOp::create(b, hasSecond, isSecondBefore(b, i, j));
  return arith::OrIOp::create(b, isBefore, noFirst);
}

SmallVector<Value> MergeRound::element(Builder &b) {
  point.clear();
  for (int64_t k = 0; k < cast<ShapedType>(from[0].getType()).getRank(); ++k)
    point.push_back(linalg::IndexOp::create(b, k));
  Value at = point[dimension], length = constant(b, run);
  Value end = constant(b, size), pair = constant(b, 2 * run);
  Value number = arith::RemUIOp::create(b, at, pair);
  firstBegin = arith::SubIOp::create(b, at, number);
  auto cut = [&](Value place) {
    return arith::MinUIOp::create(b, place, end).getResult();
  };
  secondBegin = cut(arith::AddIOp::create(b, firstBegin, length));
  firstSize = arith::SubIOp::create(b, secondBegin, firstBegin);
  Value secondEnd = cut(arith::AddIOp::create(b, secondBegin, length));
  secondSize = arith::SubIOp::create(b, secondEnd, secondBegin);
  Value i;
  Value takes = takesSecond(b, number, i);
  Value j = arith::SubIOp::create(b, number, i);
  Value source = arith::SelectOp::create(
      b, takes, arith::AddIOp::create(b, secondBegin, j).getResult(),
      arith::AddIOp::create(b, firstBegin, i).getResult());
  return elements(b, source);
}

SmallVector<Value> MergeRound::make() {
  Generic of;
  of.parallel = cast<RankedTensorType>(from[0].getType()).getRank();
  for (Value each : from) {
    of.inits.push_back(low.empty(cast<RankedTensorType>(each.getType())));
    of.maps.push_back(low.b.getMultiDimIdentityMap(of.parallel));
  }
  return low.generic(of, [&](Builder &b, ValueRange) { return element(b); });
}

SmallVector<Value> sorted(Lowering &low, SmallVector<Value> inputs,
                          unsigned dimension, Comparator before, Order order) {
  int64_t size =
      cast<RankedTensorType>(inputs[0].getType()).getDimSize(dimension);
  for (int64_t run = 1; run < size; run *= 2)
    inputs = MergeRound(low, inputs, dimension, run, before, order).make();
  return inputs;
}

LogicalResult lowerSort(Lowering &low, SortOp op) {
  if (failed(checkScalars(op.getComparator())))
    return failure();
  int64_t dimension = op.getDimension();
  if (dimension < 0)
    dimension += cast<ShapedType>(op.getInputs()[0].getType()).getRank();
  const Order order =
      ordersAll(op.getComparator().front()) ? Order::Known : Order::Unknown;
  auto before = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> lhs,
                    ArrayRef<Value> rhs) {
    SmallVector<Value> arguments;
    for (auto [one, other] : llvm::zip(lhs, rhs))
      arguments.append({one, other});
    return low.inlined(b, op.getComparator(), arguments)[0];
  };
  low.setAll(op.getResults(),
             sorted(low, low.all(op.getInputs()), dimension, before, order));
  return success();
}

} // namespace

LogicalResult lowerTopK(Lowering &low, Operation *op) {
  Value input = low[op->getOperand(0)];
  auto type = cast<RankedTensorType>(input.getType());
  int64_t last = type.getRank() - 1;
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  RankedTensorType places = signlessTensor(op->getResult(1));
  Value numbers =
      low.computed(places.clone(type.getShape()),
                   [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
                     return arith::IndexCastOp::create(
                         b, places.getElementType(), point[last]);
                   });
  auto before = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> lhs,
                    ArrayRef<Value> rhs) -> Value {
    Value x = lhs[0], y = rhs[0];
    if (isa<FloatType>(element))
      x = totalOrder(b, x), y = totalOrder(b, y);
    return arith::CmpIOp::create(b,
                                 isUnsigned(element)
                                     ? arith::CmpIPredicate::ugt
                                     : arith::CmpIPredicate::sgt,
                                 x, y);
  };
  SmallVector<Value> all =
      sorted(low, {input, numbers}, last, before, Order::Known);
  auto made = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> zeros(type.getRank(), 0), ones(type.getRank(), 1);
  for (auto [result, each] : llvm::zip(op->getResults(), all))
    low.set(result, low.sliced(each, zeros, made.getShape(), ones));
  return success();
}

ArrayRef<NamedFamily> sortFamily() {
  static const NamedFamily all[] = {family<SortOp, lowerSort>(),
                                    {"chlo.top_k", lowerTopK}};
  return all;
}

} // namespace mgpu::conversion
