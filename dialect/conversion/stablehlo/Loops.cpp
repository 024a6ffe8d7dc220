// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops: host code decides how long they go on, by numbers that it knows.
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

// Which of the values that a loop carries are integers that host code knows.

namespace {

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

} // namespace

HostNumbers::HostNumbers(const Lowering &low, WhileOp loop) : low(low) {
  kept = keptOf(loop, llvm::map_to_vector(loop.getOperand(), [&](Value init) {
                  return bool(low.number(init)) && isHostInteger(init);
                }));
  isDecided = isNumber(loop.getCond().front().getTerminator()->getOperand(0));
}

bool HostNumbers::isNumber(Value value) {
  if (auto at = known.find(value); at != known.end())
    return at->second;
  if (!isHostInteger(value))
    return false;
  if (low.number(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto loop = dyn_cast<WhileOp>(op)) {
    SmallVector<bool> inner =
        keptOf(loop, llvm::map_to_vector(loop.getOperand(), [&](Value init) {
                 return isNumber(init);
               }));
    for (auto [result, isKept] : llvm::zip(loop.getResults(), inner))
      known[result] = isKept;
    return known[value];
  }
  if (splatOf(op))
    return true;
  return (isScalarIdentity(op) || findScalarBuilder(op->getName())) &&
         op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isNumber(operand); });
}

/// Takes what the body makes of a number another way out, until no more does.
SmallVector<bool> HostNumbers::keptOf(WhileOp loop, SmallVector<bool> kept) {
  Block &body = loop.getBody().front();
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (auto [k, isKept] : llvm::enumerate(kept)) {
      known[body.getArgument(k)] = isKept;
      known[loop.getCond().front().getArgument(k)] = isKept;
    }
    for (auto [k, next] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      if (!kept[k] || isNumber(next))
        continue;
      kept[k] = false;
      isChanged = true;
    }
    if (isChanged) // what was found out rests on arguments that change
      body.walk([&](WhileOp inner) {
        for (Value result : inner.getResults())
          known.erase(result);
      });
  }
  return kept;
}

namespace {

/// A loop that counts: `while (i < end) { ...; i += step; }`, whose last sum is
/// a number of the counter's type, so that it comes to `end` without wrapping.
struct Counter {
  unsigned index;
  Value end; ///< a number of the source from before the loop
};

class LoopLowering {
public:
  LoopLowering(Lowering &low, WhileOp op)
      : low(low), op(op), body(op.getBody().front()),
        next(body.getTerminator()->getOperands()), host(low, op) {}
  LogicalResult run();

private:
  std::optional<APInt> stepOf(unsigned k) const;
  bool isInvariant(unsigned k) const { return next[k] == body.getArgument(k); }
  Value before(Value value);
  bool staysInType(unsigned k, Value end);
  std::optional<Counter> findCounter();
  void bind(ValueRange targets, ValueRange carried, Value trip);
  SmallVector<Value> carriedOf(ValueRange values);
  LogicalResult makeFor(Counter counter);
  LogicalResult makeWhile();
  Value inductionAt(unsigned k, Value trip);
  bool isCarried(unsigned k) const {
    return !isInvariant(k) && !(trips && host.isNumber(k) && stepOf(k));
  }

  Lowering &low;
  WhileOp op;
  Block &body;
  OperandRange next;
  HostNumbers host;
  Value trips; ///< null unless the loop counts
};

/// The step by which a carried number grows in each trip.
std::optional<APInt> LoopLowering::stepOf(unsigned k) const {
  auto sum = next[k].getDefiningOp<AddOp>();
  if (!sum || sum->getBlock() != &body)
    return std::nullopt;
  Value argument = body.getArgument(k);
  Value other = sum.getLhs() == argument   ? sum.getRhs()
                : sum.getRhs() == argument ? sum.getLhs()
                                           : Value();
  Operation *constant = other ? other.getDefiningOp() : nullptr;
  auto step = constant ? dyn_cast_or_null<IntegerAttr>(splatOf(constant))
                       : IntegerAttr();
  if (!step || step.getType().isInteger(1))
    return std::nullopt;
  return step.getValue();
}

/// `value` of the condition as one from before the loop; null where it changes.
Value LoopLowering::before(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &op.getCond().front())
    return low.number(value) ? value : Value();
  unsigned k = argument.getArgNumber();
  Value init = op.getOperand()[k];
  return isInvariant(k) && low.number(init) ? init : Value();
}

/// The constant that a value of the source is; none where it is not known here.
static std::optional<APInt> constantOf(Value value, Value number) {
  Operation *constant = value.getDefiningOp();
  auto splat = constant ? dyn_cast_or_null<IntegerAttr>(splatOf(constant))
                        : IntegerAttr();
  APInt found;
  if (splat)
    return splat.getValue();
  if (number && matchPattern(number, m_ConstantInt(&found)))
    return found;
  return std::nullopt;
}

/// Whether counter `k` comes to `end` before it wraps. By ones it does: it
/// meets `end`. Otherwise the last sum has to be known, or at least that what
/// comes after the number before `end` is one of the type.
bool LoopLowering::staysInType(unsigned k, Value end) {
  const APInt step = *stepOf(k);
  if (step.isOne())
    return true;
  std::optional<APInt> last = constantOf(end, low.number(end));
  if (!last)
    return false;
  Value init = op.getOperand()[k];
  const unsigned width =
      getElementTypeOrSelf(init.getType()).getIntOrFloatBitWidth();
  const unsigned wide = last->getBitWidth() + 2; // no sum below leaves this
  const APInt most = APInt::getSignedMaxValue(width).sext(wide);
  APInt sum = last->sext(wide) - 1 + step.sext(wide);
  if (std::optional<APInt> first = constantOf(init, low.number(init))) {
    if (first->sge(*last))
      return true;
    const APInt begin = first->sext(wide), length = sum - begin;
    sum = begin + length.udiv(step.sext(wide)) * step.sext(wide);
    return length.isSignedIntN(64) && sum.sle(most);
  }
  return width < 64 && sum.sle(most); // how far it goes has to fit 64 bits
}

std::optional<Counter> LoopLowering::findCounter() {
  Block &condition = op.getCond().front();
  auto test =
      condition.getTerminator()->getOperand(0).getDefiningOp<CompareOp>();
  if (!test || test.getComparisonDirection() != ComparisonDirection::LT)
    return std::nullopt;
  auto counter = dyn_cast<BlockArgument>(test.getLhs());
  if (!counter || counter.getOwner() != &condition ||
      isUnsigned(getElementTypeOrSelf(counter.getType())))
    return std::nullopt;
  unsigned k = counter.getArgNumber();
  std::optional<APInt> step = stepOf(k);
  if (!host.isNumber(k) || !step || !step->isStrictlyPositive())
    return std::nullopt;
  Value end = before(test.getRhs());
  Operation *constant = test.getRhs().getDefiningOp();
  if (!end && constant && splatOf(constant))
    end = test.getRhs();
  return end && staysInType(k, end) ? std::optional(Counter{k, end})
                                    : std::nullopt;
}

/// The number `k` after `trip` trips.
Value LoopLowering::inductionAt(unsigned k, Value trip) {
  Value init = low.number(op.getOperand()[k]);
  Value count = arith::IndexCastOp::create(low.b, init.getType(), trip);
  Value step = arith::ConstantOp::create(
      low.b, low.b.getIntegerAttr(init.getType(), *stepOf(k)));
  Value grown = arith::MulIOp::create(low.b, count, step);
  return wrapped(low.b, arith::AddIOp::create(low.b, init, grown),
                 getElementTypeOrSelf(op.getOperand()[k].getType()));
}

/// Says what `targets`, a value for each operand of the loop, are: what does
/// not change, what counts, after `trip` trips, and the `carried` ones.
void LoopLowering::bind(ValueRange targets, ValueRange carried, Value trip) {
  unsigned at = 0;
  for (auto [k, target] : llvm::enumerate(targets)) {
    Value init = op.getOperand()[k];
    if (isInvariant(k) && low.number(init))
      low.setNumber(target, low.number(init));
    else if (isInvariant(k))
      low.set(target, low[init]);
    else if (!isCarried(k))
      low.setNumber(target, inductionAt(k, trip));
    else if (host.isNumber(k))
      low.setNumber(target, carried[at++]);
    else
      low.set(target, carried[at++]);
  }
}

SmallVector<Value> LoopLowering::carriedOf(ValueRange values) {
  SmallVector<Value> carried;
  for (auto [k, value] : llvm::enumerate(values))
    if (isCarried(k))
      carried.push_back(host.isNumber(k) ? low.number(value) : low[value]);
  return carried;
}

LogicalResult LoopLowering::makeFor(Counter counter) {
  ImplicitLocOpBuilder &b = low.b;
  if (!low.number(counter.end))
    low.setNumber(counter.end, arith::ConstantOp::create(
                                   b, splatOf(counter.end.getDefiningOp())));
  auto asIndex = [&](Value number) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), number);
  };
  Value begin = asIndex(low.number(op.getOperand()[counter.index]));
  Value end = asIndex(low.number(counter.end));
  Value step = low.index(stepOf(counter.index)->getSExtValue());
  // The way back to an end before the beginning may be no number of 64 bits.
  end = arith::MaxSIOp::create(b, end, begin);
  Value length = arith::SubIOp::create(b, end, begin);
  trips = arith::CeilDivSIOp::create(b, length, step);
  SmallVector<Value> inits = carriedOf(op.getOperand());
  auto loop = scf::ForOp::create(b, low.index(0), trips, low.index(1), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    bind(body.getArguments(), loop.getRegionIterArgs(), loop.getInductionVar());
    if (failed(low.lowerBlock(body)))
      return failure();
    if (!inits.empty()) {
      b.setLoc(op.getLoc());
      scf::YieldOp::create(b, carriedOf(next));
    }
  }
  b.setLoc(op.getLoc());
  bind(op.getResults(), loop.getResults(), trips);
  return success();
}

LogicalResult LoopLowering::makeWhile() {
  ImplicitLocOpBuilder &b = low.b;
  SmallVector<Value> inits = carriedOf(op.getOperand());
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto loop = scf::WhileOp::create(b, types, inits);
  SmallVector<Location> places(types.size(), op.getLoc());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *test = b.createBlock(&loop.getBefore(), {}, types, places);
    Block &condition = op.getCond().front();
    bind(condition.getArguments(), test->getArguments(), {});
    if (failed(low.lowerBlock(condition)))
      return failure();
    b.setLoc(op.getLoc());
    scf::ConditionOp::create(
        b, low.number(condition.getTerminator()->getOperand(0)),
        test->getArguments());
    Block *trip = b.createBlock(&loop.getAfter(), {}, types, places);
    bind(body.getArguments(), trip->getArguments(), {});
    if (failed(low.lowerBlock(body)))
      return failure();
    b.setLoc(op.getLoc());
    scf::YieldOp::create(b, carriedOf(next));
  }
  bind(op.getResults(), loop.getResults(), {});
  return success();
}

LogicalResult LoopLowering::run() {
  if (!host.decides())
    return refuse(op) << "goes on as long as numbers on the devices say; a "
                         "plan has loops whose trips are known beforehand, so "
                         "give it a fixed number of trips";
  if (std::optional<Counter> counter = findCounter())
    return makeFor(*counter);
  return makeWhile();
}

LogicalResult lowerWhile(Lowering &low, WhileOp op) {
  return LoopLowering(low, op).run();
}

} // namespace

ArrayRef<NamedFamily> loopFamily() {
  static const NamedFamily all[] = {
      family<WhileOp, lowerWhile>(),
  };
  return all;
}

// Branches. Host code takes one by a number that it knows; by a number of the
// devices, all are computed, and a choice is made between their results.

namespace {

/// The results of `branches[k]` where `conditions[k]` is the first that holds,
/// else of the last branch.
LogicalResult lowerBranches(Lowering &low, Operation *op,
                            MutableArrayRef<Region> branches,
                            ArrayRef<Value> conditions) {
  Region &first = branches.front();
  auto lowered = [&](Region &region) -> LogicalResult {
    return low.lowerBlock(region.front());
  };
  auto resultsOf = [&](Region &region) {
    return low.all(region.front().getTerminator()->getOperands());
  };
  ImplicitLocOpBuilder &b = low.b;
  if (branches.size() == 1) {
    if (failed(lowered(first)))
      return failure();
    low.setAll(op->getResults(), resultsOf(first));
    return success();
  }
  Value condition = conditions.front();
  bool isKnown = !isa<TensorType>(condition.getType());
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResultTypes(), [](Type type) { return signless(type); });
  scf::IfOp made;
  OpBuilder::InsertionGuard guard(b);
  if (isKnown) {
    made = scf::IfOp::create(b, types, condition, /*withElseRegion=*/true);
    b.setInsertionPointToStart(made.thenBlock());
  }
  if (failed(lowered(first)))
    return failure();
  b.setLoc(op->getLoc());
  SmallVector<Value> ofFirst = resultsOf(first);
  if (isKnown) {
    if (!types.empty())
      scf::YieldOp::create(b, ofFirst);
    b.setInsertionPointToStart(made.elseBlock());
  }
  if (failed(lowerBranches(low, op, branches.drop_front(),
                           conditions.drop_front())))
    return failure();
  b.setLoc(op->getLoc());
  SmallVector<Value> others = low.all(op->getResults());
  if (isKnown) {
    if (!types.empty())
      scf::YieldOp::create(b, others);
    b.setInsertionPointAfter(made);
    low.setAll(op->getResults(), made.getResults());
    return success();
  }
  for (auto [result, yes, no] : llvm::zip(op->getResults(), ofFirst, others))
    low.set(result,
            low.elementwise(cast<RankedTensorType>(yes.getType()),
                            {condition, yes, no},
                            [](ImplicitLocOpBuilder &inner, ValueRange in) {
                              return SmallVector<Value>{arith::SelectOp::create(
                                  inner, in[0], in[1], in[2])};
                            }));
  return success();
}

LogicalResult lowerIf(Lowering &low, IfOp op) {
  Value known = low.number(op.getPred());
  return lowerBranches(low, op, op->getRegions(),
                       {known ? known : low[op.getPred()]});
}

/// An index that is none of a branch chooses the last one.
LogicalResult lowerCase(Lowering &low, CaseOp op) {
  Value known = low.number(op.getIndex());
  SmallVector<Value> conditions;
  auto equals = [&](ImplicitLocOpBuilder &b, Value index, unsigned k) -> Value {
    Value number =
        arith::ConstantOp::create(b, b.getIntegerAttr(index.getType(), k));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, number);
  };
  auto flag = RankedTensorType::get({}, low.b.getI1Type());
  for (unsigned k = 0; k + 1 < op->getNumRegions(); ++k)
    conditions.push_back(
        known
            ? equals(low.b, known, k)
            : low.elementwise(flag, low[op.getIndex()],
                              [&](ImplicitLocOpBuilder &b, ValueRange in) {
                                return SmallVector<Value>{equals(b, in[0], k)};
                              }));
  return lowerBranches(low, op, op->getRegions(), conditions);
}

} // namespace

ArrayRef<NamedFamily> branchFamily() {
  static const NamedFamily all[] = {
      family<IfOp, lowerIf>(),
      family<CaseOp, lowerCase>(),
  };
  return all;
}

} // namespace mgpu::conversion
