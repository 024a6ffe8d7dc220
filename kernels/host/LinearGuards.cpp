// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches on comparisons that are linear in the thread ids: where all threads
// of a block agree, and which threads of a row are inside.
#include "kernels/host/BlockEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

using namespace mlir;

namespace mgpu::kernels {

using Predicate = arith::CmpIPredicate;

std::optional<std::array<int64_t, 3>>
BlockEmitter::stridesOf(Value value) const {
  return uniformity.stridesOf(
      value, facts::Among::Block, [this](Operation *op) {
        const bool isCast = isa<arith::IndexCastOp, arith::IndexCastUIOp>(op);
        return isRecomputed(op) &&
               (!isCast || (isa<arith::IndexCastOp>(op) &&
                            op->getOperand(0).getType().isIndex()));
      });
}

/// `x PREDICATE y` as `y PREDICATE x`; nothing for eq and ne.
static std::optional<Predicate> swapped(Predicate predicate) {
  switch (predicate) {
  case Predicate::slt:
    return Predicate::sgt;
  case Predicate::sle:
    return Predicate::sge;
  case Predicate::sgt:
    return Predicate::slt;
  case Predicate::sge:
    return Predicate::sle;
  case Predicate::ult:
    return Predicate::ugt;
  case Predicate::ule:
    return Predicate::uge;
  case Predicate::ugt:
    return Predicate::ult;
  case Predicate::uge:
    return Predicate::ule;
  default:
    return std::nullopt;
  }
}

bool BlockEmitter::collectGuards(Value condition,
                                 SmallVectorImpl<Guard> &guards) const {
  Operation *op = condition.getDefiningOp();
  if (uniformity.isUniform(condition)) {
    if (!uniform.contains(condition))
      return false;
    guards.push_back({condition, {}, Predicate::eq, {}});
    return true;
  }
  if (isa_and_present<arith::AndIOp>(op))
    return collectGuards(op->getOperand(0), guards) &&
           collectGuards(op->getOperand(1), guards);
  auto compare = dyn_cast_if_present<arith::CmpIOp>(op);
  if (!compare || !swapped(compare.getPredicate()))
    return false;
  Guard guard{compare.getLhs(), compare.getRhs(), compare.getPredicate(), {}};
  if (uniformity.isUniform(guard.linear)) {
    std::swap(guard.linear, guard.bound);
    guard.predicate = *swapped(guard.predicate);
  }
  Type type = guard.linear.getType();
  auto strides = stridesOf(guard.linear);
  if (!strides || !uniform.contains(guard.bound) ||
      (!type.isIndex() && type.getIntOrFloatBitWidth() < 32))
    return false;
  guard.strides = *strides;
  guards.push_back(guard);
  return true;
}

/// Whether `predicate` holds for the least of the values, if for any.
static bool isFromAbove(Predicate predicate) {
  return predicate == Predicate::slt || predicate == Predicate::sle ||
         predicate == Predicate::ult || predicate == Predicate::ule;
}
static bool isSigned(Predicate predicate) {
  return predicate == Predicate::slt || predicate == Predicate::sle ||
         predicate == Predicate::sgt || predicate == Predicate::sge;
}

FailureOr<BlockEmitter::AllThreads>
BlockEmitter::allThreads(ArrayRef<Guard> guards, Operation *op) {
  Location loc = op->getLoc();
  AllThreads result;
  auto require = [&](Value &all, Value condition) {
    all = all ? arith::AndIOp::create(b, loc, all, condition).getResult()
              : condition;
  };
  for (const Guard &guard : guards) {
    if (!guard.bound) {
      require(result.inside, uniform.lookup(guard.linear));
      continue;
    }
    // The value at the corners where it is least and greatest. They lie less
    // than half the type's range apart, so the greatest is not below the least
    // only if no value between them wraps around.
    Thread least, greatest;
    int64_t extents[3] = {block.x, block.y, block.z};
    for (unsigned k = 0; k < 3; ++k) {
      Value low = constant(0), high = constant(extents[k] - 1);
      bool rises = guard.strides[k] >= 0;
      least.ids[k] = rises ? low : high;
      greatest.ids[k] = rises ? high : low;
    }
    FailureOr<Value> low = lookup(guard.linear, least, op);
    FailureOr<Value> high = lookup(guard.linear, greatest, op);
    if (failed(low) || failed(high))
      return failure();
    Value ordered = arith::CmpIOp::create(
        b, loc, isSigned(guard.predicate) ? Predicate::sle : Predicate::ule,
        *low, *high);
    require(result.ordered, ordered);
    require(result.inside,
            arith::CmpIOp::create(b, loc, guard.predicate,
                                  isFromAbove(guard.predicate) ? *high : *low,
                                  uniform.lookup(guard.bound)));
  }
  return result;
}

bool BlockEmitter::hasRowRange(ArrayRef<Guard> guards) const {
  return block.x >= 4 && llvm::all_of(guards, [](const Guard &guard) {
           return std::abs(guard.strides[0]) <= 1;
         });
}

FailureOr<std::pair<Value, Value>>
BlockEmitter::rowRange(ArrayRef<Guard> guards, const Thread &row,
                       Operation *op) {
  Location loc = op->getLoc();
  Value none = constant(0), all = constant(block.x);
  Value low = none, high = all;
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, condition, x, y);
  };
  for (const Guard &guard : guards) {
    if (!guard.bound) {
      high = select(uniform.lookup(guard.linear), high, none);
      continue;
    }
    Thread left, right;
    for (unsigned k = 1; k < 3; ++k)
      left.ids[k] = right.ids[k] = row.ids[k];
    left.ids[0] = none;
    right.ids[0] = constant(block.x - 1);
    bool rises = guard.strides[0] >= 0;
    FailureOr<Value> least = lookup(guard.linear, rises ? left : right, op);
    FailureOr<Value> greatest = lookup(guard.linear, rises ? right : left, op);
    if (failed(least) || failed(greatest))
      return failure();
    Value bound = uniform.lookup(guard.bound);
    if (guard.strides[0] == 0) {
      Value inside =
          arith::CmpIOp::create(b, loc, guard.predicate, *least, bound);
      high = select(inside, high, none);
      continue;
    }
    // How many threads, from the least value on, are below the bound (or at
    // it). The difference is only used where it is less than the row.
    Predicate below = guard.predicate;
    if (!isFromAbove(below))
      below = arith::invertPredicate(below);
    Value distance = arith::SubIOp::create(b, loc, bound, *least);
    if (!distance.getType().isIndex())
      distance =
          arith::IndexCastUIOp::create(b, loc, b.getIndexType(), distance);
    if (below == Predicate::sle || below == Predicate::ule)
      distance = arith::AddIOp::create(b, loc, distance, constant(1));
    Value count =
        select(arith::CmpIOp::create(b, loc, below, *greatest, bound), all,
               select(arith::CmpIOp::create(b, loc, below, *least, bound),
                      distance, none));
    // The values below are the first of the row's n where the value rises, else
    // the last.
    bool belowIsInside = isFromAbove(guard.predicate);
    if (!rises)
      count = arith::SubIOp::create(b, loc, all, count);
    if (belowIsInside == rises)
      high = arith::MinUIOp::create(b, loc, high, count);
    else
      low = arith::MaxUIOp::create(b, loc, low, count);
  }
  Value length = arith::SubIOp::create(
      b, loc, arith::MaxUIOp::create(b, loc, low, high), low);
  return std::pair{low, length};
}

// Three versions: all threads inside, where the branch is shared and its loops
// can be interchanged; the threads of each row that are inside, found by one
// cheap comparison; and, where ids wrap around, each thread for itself.
LogicalResult BlockEmitter::emitLikelyIf(scf::IfOp branch,
                                         ArrayRef<Guard> guards) {
  if (failed(flush(branch->getBlock())))
    return failure();
  auto results = arraysFor(branch.getResults(), branch);
  if (failed(results))
    return failure();
  auto all = allThreads(guards, branch);
  if (failed(all))
    return failure();
  Location loc = branch.getLoc();
  OpBuilder::InsertionGuard insertion(b);
  auto openVersions = [&](Value condition) {
    auto versions = scf::IfOp::create(b, loc, TypeRange(), condition,
                                      /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
    for (Region *region :
         {&versions.getThenRegion(), &versions.getElseRegion()})
      if (!region->front().mightHaveTerminator()) {
        b.setInsertionPointToEnd(&region->front());
        scf::YieldOp::create(b, loc);
      }
    return versions;
  };
  auto startAt = [&](Region &region) {
    b.setInsertionPoint(region.front().getTerminator());
  };
  auto emitEachThread = [&](ArrayRef<Guard> rowGuards) {
    pending.insert(branch);
    for (auto [result, array] : llvm::zip_equal(branch.getResults(), *results))
      if (array)
        stores.push_back({result, array});
    rowsOf = rowGuards.empty() ? scf::IfOp() : branch;
    rowsGuards = rowGuards;
    LogicalResult done = emitThreadLoops();
    rowsOf = {};
    pending.clear();
    stores.clear();
    return done;
  };
  // Some comparison varies, or the branch would be shared.
  auto versions =
      openVersions(arith::AndIOp::create(b, loc, all->ordered, all->inside));
  startAt(versions.getThenRegion());
  Block &body = branch.getThenRegion().front();
  if (failed(emitBlock(body)))
    return failure();
  storeVarying(body.getTerminator()->getOperands(), branch.getResults(),
               *results);
  if (failed(flush(&body, /*last=*/true)))
    return failure();
  startAt(versions.getElseRegion());
  if (!hasRowRange(guards))
    return emitEachThread({});
  auto ranges = openVersions(all->ordered);
  startAt(ranges.getThenRegion());
  if (failed(emitEachThread(guards)))
    return failure();
  startAt(ranges.getElseRegion());
  return emitEachThread({});
}

} // namespace mgpu::kernels
