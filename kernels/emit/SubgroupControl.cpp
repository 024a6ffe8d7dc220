// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/SubgroupControl.h"

#include "kernels/emit/SubgroupBarrier.h"
#include "kernels/emit/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

constexpr int64_t subgroupSize = 32;

/// What lanes of one subgroup do together, and no others.
bool isOfSubgroup(Operation *op) {
  return isa<gpu::ShuffleOp, gpu::RotateOp, gpu::SubgroupReduceOp>(op) ||
         (isa<gpu::BarrierOp>(op) && !madeFor(op).empty());
}

/// What may be done where it was not asked for.
bool isHarmless(Operation *op) {
  return isa<memref::AllocaOp>(op) ||
         (op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
          isSpeculatable(op));
}

/// Which values all lanes of a subgroup, or all threads of a block, have alike;
/// of IR that does not change meanwhile.
class Alike {
public:
  enum Scope { InSubgroup, InBlock };
  Alike(Dim3 block, Scope scope)
      : scope(scope),
        // Else a subgroup has threads of several rows.
        rowsAreWhole(block.x % subgroupSize == 0 || block.y * block.z == 1) {}

  bool isUniform(Value value) const {
    auto at = known.find(value);
    if (at != known.end())
      return at->second;
    const bool result = find(value);
    return known[value] = result;
  }
  bool hasUniformBounds(scf::ForOp loop) const {
    return isUniform(loop.getLowerBound()) && isUniform(loop.getUpperBound()) &&
           isUniform(loop.getStep());
  }

private:
  bool find(Value value) const {
    if (matchPattern(value, m_Constant()))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op) {
      auto argument = cast<BlockArgument>(value);
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop ? value == loop.getInductionVar() && hasUniformBounds(loop)
                  : isa<func::FuncOp>(argument.getOwner()->getParentOp());
    }
    if (isa<gpu::BlockIdOp, gpu::BlockDimOp, gpu::GridDimOp,
            gpu::NumSubgroupsOp, gpu::SubgroupSizeOp>(op))
      return true;
    if (isa<gpu::SubgroupIdOp>(op))
      return scope == InSubgroup;
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
      return scope == InSubgroup && rowsAreWhole &&
             id.getDimension() != gpu::Dimension::x;
    if (scope == InSubgroup && isWholeSubgroups(op))
      return true;
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           !isa<gpu::GPUDialect>(op->getDialect()) &&
           llvm::all_of(op->getOperands(),
                        [&](Value each) { return isUniform(each); });
  }

  /// The thread's number along x, in a type that holds each.
  static bool isLaneNumber(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<arith::IndexCastOp, arith::TruncIOp>(op) ||
          (!value.getType().isIndex() &&
           value.getType().getIntOrFloatBitWidth() < 16))
        break;
      value = op->getOperand(0);
    }
    auto id = value.getDefiningOp<gpu::ThreadIdOp>();
    return id && id.getDimension() == gpu::Dimension::x;
  }

  /// x / 32, x >> 5 and their like, x < 32.
  bool isWholeSubgroups(Operation *op) const {
    if (!rowsAreWhole || op->getNumOperands() != 2)
      return false;
    APInt number;
    if (!isLaneNumber(op->getOperand(0)) ||
        !matchPattern(op->getOperand(1), m_ConstantInt(&number)) ||
        !number.isSignedIntN(16))
      return false;
    const int64_t value = number.getSExtValue();
    if (isa<arith::DivUIOp, arith::DivSIOp>(op))
      return value > 0 && value % subgroupSize == 0;
    if (isa<arith::ShRUIOp, arith::ShRSIOp>(op))
      return value >= 5 && value < 32;
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare || value < 0)
      return false;
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case P::ult:
    case P::slt:
    case P::uge:
    case P::sge:
      return value % subgroupSize == 0;
    case P::ule:
    case P::sle:
    case P::ugt:
    case P::sgt:
      return (value + 1) % subgroupSize == 0;
    case P::eq:
    case P::ne:
      return false;
    }
    return false;
  }

  Scope scope;
  bool rowsAreWhole;
  mutable llvm::DenseMap<Value, bool> known;
};

class Flattener {
public:
  explicit Flattener(Dim3 block)
      : ofSubgroup(block, Alike::InSubgroup), ofBlock(block, Alike::InBlock) {}

  /// Whether all threads of a block go the same way through `op`.
  bool isShared(Operation *op) const {
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return ofBlock.isUniform(branch.getCondition());
    auto loop = dyn_cast<scf::ForOp>(op);
    return loop && ofBlock.hasUniformBounds(loop);
  }

  /// Whether `op`, which is not, is control that can be flattened.
  bool canFlatten(Operation *op) const {
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return canTakeApart(branch);
    auto loop = dyn_cast<scf::ForOp>(op);
    return loop && canTakeApart(loop);
  }

  void flatten(Operation *op) {
    OpBuilder b(op);
    IRMapping map;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      branch->replaceAllUsesWith(
          emitIf(branch, branch.getCondition(), {}, b, map));
    } else {
      auto loop = cast<scf::ForOp>(op);
      emitFor(loop, {}, b, map);
      for (Value result : loop.getResults())
        result.replaceAllUsesWith(map.lookup(result));
    }
    op->erase();
  }

private:
  bool canTakeApart(scf::IfOp branch) const {
    return ofSubgroup.isUniform(branch.getCondition()) &&
           llvm::all_of(branch->getRegions(), [&](Region &region) {
             return region.empty() || canTakeApart(region.front());
           });
  }
  bool canTakeApart(scf::ForOp loop) const {
    return ofSubgroup.hasUniformBounds(loop) && !loop.getUnsignedCmp() &&
           canTakeApart(*loop.getBody());
  }
  bool canTakeApart(Block &block) const {
    return llvm::all_of(block.without_terminator(), [&](Operation &op) {
      if (isOfSubgroup(&op))
        return true;
      if (findConvergent(&op)) {
        if (auto inner = dyn_cast<scf::IfOp>(op))
          return canTakeApart(inner);
        auto loop = dyn_cast<scf::ForOp>(op);
        return loop && canTakeApart(loop);
      }
      // A view of what was not made has no value to stand for it.
      return isHarmless(&op) ||
             llvm::none_of(op.getResultTypes(), llvm::IsaPred<MemRefType>);
    });
  }

  static Value zeroOf(OpBuilder &b, Location loc, Type type) {
    return arith::ConstantOp::create(b, loc,
                                     cast<TypedAttr>(b.getZeroAttr(type)));
  }

  /// The branch's results, which are those of both its regions.
  SmallVector<Value> emitIf(scf::IfOp branch, Value condition, Value outer,
                            OpBuilder &b, IRMapping &map) {
    Location loc = branch.getLoc();
    Value no = arith::XOrIOp::create(
        b, loc, condition,
        arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
    SmallVector<Value> yes = emitBlock(branch.getThenRegion().front(),
                                       both(condition, outer, b, loc), b, map);
    if (branch.getElseRegion().empty())
      return {};
    SmallVector<Value> otherwise = emitBlock(branch.getElseRegion().front(),
                                             both(no, outer, b, loc), b, map);
    SmallVector<Value> results;
    for (auto [then, other] : llvm::zip_equal(yes, otherwise))
      results.push_back(
          arith::SelectOp::create(b, loc, condition, then, other));
    return results;
  }

  static Value both(Value condition, Value outer, OpBuilder &b, Location loc) {
    return outer ? arith::AndIOp::create(b, loc, condition, outer).getResult()
                 : condition;
  }

  /// The block's statements, for those threads for which `condition` holds;
  /// returns what it yields.
  SmallVector<Value> emitBlock(Block &block, Value condition, OpBuilder &b,
                               IRMapping &map) {
    SmallVector<Operation *> run; // behind the condition
    for (Operation &op : block.without_terminator()) {
      const bool meets = findConvergent(&op) != nullptr;
      if (!meets && !isHarmless(&op)) {
        run.push_back(&op);
        continue;
      }
      // What a harmless one needs may be in the run.
      emitRun(run, condition, b, map);
      if (!meets || isOfSubgroup(&op))
        b.clone(op, map);
      else if (auto inner = dyn_cast<scf::IfOp>(op))
        map.map(inner.getResults(),
                emitIf(inner, map.lookupOrDefault(inner.getCondition()),
                       condition, b, map));
      else
        emitFor(cast<scf::ForOp>(op), condition, b, map);
    }
    emitRun(run, condition, b, map);
    SmallVector<Value> yielded;
    for (Value value : block.getTerminator()->getOperands())
      yielded.push_back(map.lookupOrDefault(value));
    return yielded;
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
    auto widened = [&](Value value) -> Value {
      return type.isIndex()
                 ? arith::IndexCastOp::create(b, loc, word, value).getResult()
             : type == word
                 ? value
                 : arith::ExtSIOp::create(b, loc, word, value).getResult();
    };
    if (condition) // who does not take part has no step
      step = arith::SelectOp::create(b, loc, condition, step, number(1, type));
    Value distance = arith::SubIOp::create(b, loc, widened(high), widened(low));
    Value trips = arith::MaxSIOp::create(
        b, loc, arith::CeilDivSIOp::create(b, loc, distance, widened(step)),
        number(0, word));
    if (condition)
      trips =
          arith::SelectOp::create(b, loc, condition, trips, number(0, word));
    Value most = gpu::AllReduceOp::create(
        b, loc, word, trips,
        gpu::AllReduceOperationAttr::get(b.getContext(),
                                         gpu::AllReduceOperation::MAXSI),
        /*uniform=*/true);
    SmallVector<Value> inits;
    for (Value init : loop.getInitArgs())
      inits.push_back(map.lookupOrDefault(init));
    auto copy = scf::ForOp::create(b, loc, number(0, word), most,
                                   number(1, word), inits);
    copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    Block *body = copy.getBody();
    if (!body->empty()) // made where nothing is carried
      body->back().erase();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    Value trip = copy.getInductionVar();
    Value takesPart = arith::CmpIOp::create(
        inner, loc, arith::CmpIPredicate::slt, trip, trips);
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
    for (auto [value, before] :
         llvm::zip_equal(yielded, copy.getRegionIterArgs()))
      value = arith::SelectOp::create(inner, loc, takesPart, value, before);
    scf::YieldOp::create(inner, loc, yielded);
    map.map(loop.getResults(), copy.getResults());
  }

  /// The operations in one scf.if, whose results are what others use of them.
  static void emitRun(SmallVector<Operation *> &run, Value condition,
                      OpBuilder &b, IRMapping &map) {
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

  Alike ofSubgroup, ofBlock;
};

} // namespace

void flattenSubgroupControl(func::FuncOp entry, Dim3 block) {
  // The outermost first: it takes those inside with it.
  SmallVector<Operation *> found;
  Flattener flattener(block);
  entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == entry.getOperation() || op->getNumRegions() == 0 ||
        !findConvergent(op) || flattener.isShared(op))
      return WalkResult::advance();
    // What is inside control that not all threads share cannot be done by all.
    if (flattener.canFlatten(op))
      found.push_back(op);
    return WalkResult::skip();
  });
  for (Operation *op : found)
    flattener.flatten(op);
}

} // namespace mgpu::kernels
