// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/SubgroupControl.h"

#include "facts/Uniformity.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/LaneCheck.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "dialect/mgpu/Diagnostics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Divisions that MLIR takes for speculatable, though by 0 they are not.
bool mayDivideByZero(Operation *op) {
  return isa<arith::FloorDivSIOp, arith::RemSIOp, arith::RemUIOp, index::DivSOp,
             index::DivUOp, index::CeilDivSOp, index::CeilDivUOp,
             index::FloorDivSOp, index::RemSOp, index::RemUOp, math::IPowIOp>(
      op);
}

/// Whether it may be done where it was not asked for.
bool isHarmless(Operation *op) {
  return isa<memref::AllocaOp>(op) ||
         (op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
          isSpeculatable(op) && !mayDivideByZero(op));
}

/// Whether a value stands for one of these where it was not made.
bool haveZeros(TypeRange types) {
  return llvm::all_of(types, [](Type type) {
    return bool(Builder(type.getContext()).getZeroAttr(type));
  });
}

bool canFlatten(Operation *op);

bool canTake(Operation &op) {
  if (meetsInSubgroup(&op))
    return true;
  if (facts::findConvergent(&op))
    return canFlatten(&op);
  // A view of what was not made has no value to stand for it.
  return isHarmless(&op) || haveZeros(op.getResultTypes());
}

bool canFlatten(Operation *op) {
  if (!isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op) ||
      !haveZeros(op->getResultTypes()))
    return false;
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return region.empty() ||
           (haveZeros(region.getArgumentTypes()) &&
            llvm::all_of(region.front().without_terminator(), canTake));
  });
}

Value zeroOf(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc,
                                   cast<TypedAttr>(b.getZeroAttr(type)));
}

/// `condition` where `outer` holds, if there is one. A lane that does not come
/// may have poison for its condition, which an andi would pass on.
Value both(Value condition, Value outer, OpBuilder &b, Location loc) {
  if (!outer)
    return condition;
  Value none = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  return arith::SelectOp::create(b, loc, outer, condition, none);
}

SmallVector<Value> choose(Value condition, ValueRange then,
                          ValueRange otherwise, OpBuilder &b, Location loc) {
  SmallVector<Value> chosen;
  for (auto [x, y] : llvm::zip_equal(then, otherwise))
    chosen.push_back(arith::SelectOp::create(b, loc, condition, x, y));
  return chosen;
}

Value asNumber(Value truth, OpBuilder &b, Location loc) {
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), truth);
}
/// The largest of the block's.
Value mostOf(Value number, OpBuilder &b, Location loc) {
  return gpu::AllReduceOp::create(
      b, loc, number.getType(), number,
      gpu::AllReduceOperationAttr::get(b.getContext(),
                                       gpu::AllReduceOperation::MAXSI),
      /*uniform=*/true);
}

SmallVector<Value> emitBlock(Block &block, Value condition, OpBuilder &b,
                             IRMapping &map);

void emitIf(scf::IfOp branch, Value outer, OpBuilder &b, IRMapping &map) {
  Location loc = branch.getLoc();
  Value condition = map.lookupOrDefault(branch.getCondition());
  Value taken = both(condition, outer, b, loc);
  SmallVector<Value> yes =
      emitBlock(branch.getThenRegion().front(), taken, b, map);
  if (branch.getElseRegion().empty())
    return;
  Value no = arith::XOrIOp::create(
      b, loc, condition,
      arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  SmallVector<Value> otherwise = emitBlock(branch.getElseRegion().front(),
                                           both(no, outer, b, loc), b, map);
  for (auto [result, then, other] :
       llvm::zip_equal(branch.getResults(), yes, otherwise))
    map.map(
        result,
        arith::SelectOp::create(b, loc, condition, then, other).getResult());
}

/// How often `loop` runs, as an i64.
Value tripsOf(scf::ForOp loop, Value low, Value high, Value step,
              OpBuilder &b) {
  Location loc = loop.getLoc();
  Type word = b.getI64Type();
  const bool isUnsigned = loop.getUnsignedCmp();
  auto widened = [&](Value value) -> Value {
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, word, value);
    if (value.getType() == word)
      return value;
    return isUnsigned ? arith::ExtUIOp::create(b, loc, word, value).getResult()
                      : arith::ExtSIOp::create(b, loc, word, value);
  };
  low = widened(low);
  high = widened(high);
  step = widened(step);
  Value distance = arith::SubIOp::create(b, loc, high, low);
  Value trips =
      isUnsigned
          ? arith::CeilDivUIOp::create(b, loc, distance, step).getResult()
          : arith::CeilDivSIOp::create(b, loc, distance, step);
  Value runs = arith::CmpIOp::create(b, loc,
                                     isUnsigned ? arith::CmpIPredicate::ult
                                                : arith::CmpIPredicate::slt,
                                     low, high);
  return arith::SelectOp::create(
      b, loc, runs, trips,
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0)));
}

/// The loop with as many trips as the subgroup that has most, for all.
void emitFor(scf::ForOp loop, Value condition, OpBuilder &b, IRMapping &map) {
  Location loc = loop.getLoc();
  Value low = map.lookupOrDefault(loop.getLowerBound()),
        high = map.lookupOrDefault(loop.getUpperBound()),
        step = map.lookupOrDefault(loop.getStep());
  Type type = low.getType(), word = b.getI64Type();
  auto number = [&](int64_t value, Type of) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(of, value));
  };
  if (condition) // who does not take part has no step
    step = arith::SelectOp::create(b, loc, condition, step, number(1, type));
  Value trips = tripsOf(loop, low, high, step, b);
  if (condition)
    trips = arith::SelectOp::create(b, loc, condition, trips, number(0, word));
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs())
    inits.push_back(map.lookupOrDefault(init));
  auto copy = scf::ForOp::create(b, loc, number(0, word), mostOf(trips, b, loc),
                                 number(1, word), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = copy.getBody();
  if (!body->empty()) // made where nothing is carried
    body->back().erase();
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  Value trip = copy.getInductionVar();
  Value takesPart =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, trip, trips);
  Value at = trip;
  if (type.isIndex())
    at = arith::IndexCastOp::create(inner, loc, type, trip);
  else if (type != word)
    at = arith::TruncIOp::create(inner, loc, type, trip);
  at = arith::AddIOp::create(inner, loc, low,
                             arith::MulIOp::create(inner, loc, at, step));
  map.map(loop.getInductionVar(), at);
  map.map(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  SmallVector<Value> yielded =
      emitBlock(*loop.getBody(), takesPart, inner, map);
  scf::YieldOp::create(
      inner, loc,
      choose(takesPart, yielded, copy.getRegionIterArgs(), inner, loc));
  map.map(loop.getResults(), copy.getResults());
}

/// The loop for as long as any thread goes on. It carries whether this one
/// does, what the source's carries, and what this one last gave on.
void emitWhile(scf::WhileOp loop, Value condition, OpBuilder &b,
               IRMapping &map) {
  Location loc = loop.getLoc();
  SmallVector<Value> inits{
      condition
          ? condition
          : arith::ConstantOp::create(b, loc, b.getBoolAttr(true)).getResult()};
  for (Value init : loop.getInits())
    inits.push_back(map.lookupOrDefault(init));
  for (Type type : loop.getResultTypes())
    inits.push_back(zeroOf(b, loc, type));
  const size_t numCarried = loop.getInits().size();
  auto copy = scf::WhileOp::create(
      b, loc, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &inner, Location, ValueRange all) {
        ValueRange carried = all.slice(1, numCarried),
                   given = all.drop_front(1 + numCarried);
        map.map(loop.getBeforeArguments(), carried);
        SmallVector<Value> next =
            emitBlock(*loop.getBeforeBody(), all[0], inner, map);
        Value goesOn = both(next[0], all[0], inner, loc);
        Value number = asNumber(goesOn, inner, loc);
        SmallVector<Value> passed{goesOn};
        llvm::append_range(passed, carried);
        llvm::append_range(passed, choose(all[0], ValueRange(next).drop_front(),
                                          given, inner, loc));
        Value some = arith::CmpIOp::create(
            inner, loc, arith::CmpIPredicate::ne, mostOf(number, inner, loc),
            arith::ConstantOp::create(inner, loc, inner.getI32IntegerAttr(0)));
        scf::ConditionOp::create(inner, loc, some, passed);
      },
      [&](OpBuilder &inner, Location, ValueRange all) {
        ValueRange carried = all.slice(1, numCarried),
                   given = all.drop_front(1 + numCarried);
        map.map(loop.getAfterArguments(), given);
        SmallVector<Value> next =
            emitBlock(*loop.getAfterBody(), all[0], inner, map);
        SmallVector<Value> passed{all[0]};
        llvm::append_range(passed, choose(all[0], next, carried, inner, loc));
        llvm::append_range(passed, given);
        scf::YieldOp::create(inner, loc, passed);
      });
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  map.map(loop.getResults(), copy.getResults().drop_front(1 + numCarried));
}

/// The operations in one scf.if, whose results are what others use of them.
void emitRun(SmallVector<Operation *> &run, Value condition, OpBuilder &b,
             IRMapping &map) {
  if (run.empty())
    return;
  Location loc = run.front()->getLoc();
  SmallVector<Value> used;
  for (Operation *op : run)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return llvm::none_of(
                run, [&](Operation *each) { return each->isAncestor(user); });
          }))
        used.push_back(result);
  auto guarded =
      scf::IfOp::create(b, loc, TypeRange(ValueRange(used)), condition,
                        /*withElseRegion=*/!used.empty());
  auto end = [&](Region &region) {
    Block &block = region.front();
    if (!block.empty()) // made where nothing is yielded
      block.back().erase();
    return OpBuilder::atBlockEnd(&block);
  };
  OpBuilder inner = end(guarded.getThenRegion());
  SmallVector<Value> made, zeros;
  for (Operation *op : run)
    inner.clone(*op, map);
  for (Value value : used)
    made.push_back(map.lookup(value));
  scf::YieldOp::create(inner, loc, made);
  if (!used.empty()) {
    OpBuilder other = end(guarded.getElseRegion());
    for (Value value : used)
      zeros.push_back(zeroOf(other, loc, value.getType()));
    scf::YieldOp::create(other, loc, zeros);
  }
  map.map(used, guarded.getResults());
  run.clear();
}

/// `op` for those threads for which `condition` holds, where there is one.
void emitControl(Operation *op, Value condition, OpBuilder &b, IRMapping &map) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    emitIf(branch, condition, b, map);
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    emitFor(loop, condition, b, map);
  else
    emitWhile(cast<scf::WhileOp>(op), condition, b, map);
}

/// A check that all lanes of a subgroup come to `op`, or none; `condition` says
/// which.
void checkLanes(Operation *op, Value condition, OpBuilder &b) {
  Location loc = op->getLoc();
  auto word = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  Value comes = asNumber(condition, b, loc);
  Value first =
      gpu::ShuffleOp::create(b, loc, comes, word(0), word(subgroupSize),
                             gpu::ShuffleMode::IDX)
          .getShuffleResult();
  Value same =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, comes, first);
  createStop(b, loc, same,
             "has some lanes of a subgroup come to the '" + askedName(op) +
                 "' at " + ir::describeLocation(loc) +
                 " and others not: all of them or none must");
}

/// The block's statements, for those threads for which `condition` holds;
/// returns what it yields.
SmallVector<Value> emitBlock(Block &block, Value condition, OpBuilder &b,
                             IRMapping &map) {
  SmallVector<Operation *> run; // behind the condition
  bool isChecked = false;
  for (Operation &op : block.without_terminator()) {
    const bool meets = facts::findConvergent(&op) != nullptr;
    if (!meets && !isHarmless(&op)) {
      run.push_back(&op);
      continue;
    }
    // A value that a harmless one needs may be in the run.
    emitRun(run, condition, b, map);
    if (meetsInSubgroup(&op) && !isChecked) {
      checkLanes(&op, condition, b);
      isChecked = true; // for those that follow, too
    }
    if (!meets || meetsInSubgroup(&op))
      b.clone(op, map);
    else
      emitControl(&op, condition, b, map);
  }
  emitRun(run, condition, b, map);
  SmallVector<Value> yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(map.lookupOrDefault(value));
  return yielded;
}

void flatten(Operation *op) {
  OpBuilder b(op);
  IRMapping map;
  emitControl(op, {}, b, map);
  for (Value result : op->getResults())
    result.replaceAllUsesWith(map.lookup(result));
  op->erase();
}

} // namespace

void flattenSubgroupControl(func::FuncOp entry) {
  auto isNested = [&](Operation *op) {
    return op != entry.getOperation() && op->getNumRegions() != 0 &&
           !facts::isConvergent(op) && facts::findConvergent(op);
  };
  if (!entry
           .walk([&](Operation *op) {
             return isNested(op) ? WalkResult::interrupt()
                                 : WalkResult::advance();
           })
           .wasInterrupted())
    return;
  const facts::Uniformity uniformity(entry.getBody());
  // The outermost first: it takes those inside with it.
  SmallVector<Operation *> found;
  entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isNested(op) || uniformity.hasUniformControl(op))
      return WalkResult::advance();
    // An operation inside control that not all threads share cannot be done by
    // all.
    if (canFlatten(op))
      found.push_back(op);
    return WalkResult::skip();
  });
  for (Operation *op : found)
    flatten(op);
}

} // namespace mgpu::kernels
