// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments, results, loops and branches; PartitionOps.cpp has the operations.
#include "dialect/conversion/spmd/Partition.h"

#include "dialect/mgpu/Diagnostics.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

RankedTensorType Partition::partType(Value value, spmd::LayoutAttr layout) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(layout.shardShape(type.getShape()));
}

/// A value that several operations of a block want in one layout changes once.
Value Partition::part(Value value, spmd::LayoutAttr layout) {
  Value &made = changed[{value, layout, b.getInsertionBlock()}];
  if (!made)
    made = change(value, map.lookup(value), layouts.of(value), layout, {});
  return made;
}

/// Reshards what stands for `value`, and says in a remark what that costs.
Value Partition::change(Value value, Value local, spmd::LayoutAttr from,
                        spmd::LayoutAttr to, const Partial &partial) {
  const ReshardRequest request{cast<RankedTensorType>(value.getType()), from,
                               to, partial.axes};
  const ReshardSteps &steps = reshards.find(request);
  reportChange(value, request, steps);
  return reshard(b, value.getLoc(), request, local, steps, partial.kind);
}

/// The cuts of what is being made, with a remark where tensors disagree.
SmallVector<Cut> Partition::takeCuts(const FactorRule &rule) {
  SmallVector<Layouts::Way> ways = layouts.waysOf(rule);
  if (ways.size() > 1)
    reportConflict(ways);
  return ways.front().cuts;
}

Value Partition::whole(Value value) {
  SmallVector<Axes> uncut(cast<RankedTensorType>(value.getType()).getRank());
  return part(value, layoutOfCuts(b.getContext(), layouts.getMesh(), uncut));
}

/// `local` is what stands for `value`, and lies in layout `has`.
void Partition::setPart(Value value, Value local, spmd::LayoutAttr has,
                        const Partial &partial) {
  map.map(value, change(value, local, has, layouts.of(value), partial));
}

LogicalResult Partition::run() {
  Block &old = function.front();
  Block *body = new Block;
  function.getBody().push_front(body);
  b.setInsertionPointToEnd(body);
  reportLayouts();
  takeArguments(old, *body);
  if (failed(emitBlock(old)))
    return failure();
  current = old.getTerminator();
  giveResults(current);
  old.dropAllReferences();
  old.erase();
  return success();
}

void Partition::takeArguments(Block &old, Block &body) {
  for (BlockArgument argument : old.getArguments()) {
    Value full = body.addArgument(argument.getType(), argument.getLoc());
    map.map(argument, full);
    if (!isTensor(argument))
      continue;
    spmd::LayoutAttr layout = layouts.of(argument);
    function.setArgAttr(argument.getArgNumber(), spmd::layoutName, layout);
    map.map(argument,
            spmd::FullToShardOp::create(b, argument.getLoc(),
                                        partType(argument, layout), full)
                .getShard());
  }
}

/// A result has the layout that the program asks for, that of the argument
/// whose next state it is, or the one it was computed in.
void Partition::giveResults(Operation *end) {
  SmallVector<Value> results;
  for (OpOperand &returned : end->getOpOperands()) {
    Value value = returned.get();
    if (!isTensor(value)) {
      results.push_back(map.lookupOrDefault(value));
      continue;
    }
    unsigned index = returned.getOperandNumber();
    spmd::LayoutAttr layout = spmd::layoutOfResult(function, index);
    auto alias =
        function.getResultAttrOfType<IntegerAttr>(index, spmd::aliasName);
    if (alias)
      layout = layouts.of(end->getBlock()->getArgument(alias.getInt()));
    if (!layout)
      layout = layouts.of(value);
    function.setResultAttr(index, spmd::layoutName, layout);
    results.push_back(spmd::ShardToFullOp::create(b, value.getLoc(),
                                                  value.getType(),
                                                  part(value, layout))
                          .getFull());
  }
  func::ReturnOp::create(b, end->getLoc(), results);
}

LogicalResult Partition::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emit(&op)))
      return failure();
  return success();
}

LogicalResult Partition::emit(Operation *op) {
  current = op;
  if (isa<spmd::SameLayoutOp>(op))
    return success();
  if (layouts.isDeviceCode(op))
    return emitWhole(op);
  DenseElementsAttr value;
  if (matchPattern(op, m_Constant(&value)))
    return emitConstant(op, value), success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](spmd::LayoutConstraintOp each) {
        map.map(each.getResult(),
                part(each.getTensor(), layouts.of(each.getResult())));
        return success();
      })
      .Case([&](tensor::EmptyOp each) { return emitEmpty(each), success(); })
      .Case([&](tensor::SplatOp each) { return emitSplat(each), success(); })
      .Case([&](scf::ForOp each) { return emitLoop(each); })
      .Case([&](scf::IfOp each) { return emitBranch(each); })
      .Default([&](Operation *) {
        FactorRule rule = factorRuleOf(op);
        if (rule.factors.empty())
          return emitWhole(op);
        if (auto each = dyn_cast<linalg::LinalgOp>(op))
          emitLinalg(each, rule);
        else
          emitByRule(op, rule);
        return success();
      });
}

/// An operation of which nothing is known, with its regions: it computes on
/// whole tensors, on each device.
LogicalResult Partition::emitWhole(Operation *op) {
  IRMapping mine = map;
  bool hasConstraint = false;
  op->walk([&](Operation *inner) {
    hasConstraint |= isa<spmd::LayoutConstraintOp>(inner);
    for (Value operand : inner->getOperands())
      if (isTensor(operand) && map.contains(operand))
        mine.map(operand, whole(operand));
  });
  if (hasConstraint)
    return ir::emitUnsupported(op)
           << "has a layout constraint in its body; only the bodies of "
              "scf.for and scf.if without code of single devices are "
              "partitioned";
  Operation *copy = b.clone(*op, mine);
  for (auto [result, made] : llvm::zip(op->getResults(), copy->getResults())) {
    map.map(result, made);
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      setPart(result, made,
              layoutOfCuts(b.getContext(), layouts.getMesh(),
                           SmallVector<Axes>(type.getRank())));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

LogicalResult Partition::emitLoop(scf::ForOp loop) {
  auto partOrSame = [&](Value value, Value target) {
    return isTensor(value) ? part(value, layouts.of(target))
                           : map.lookupOrDefault(value);
  };
  SmallVector<Value> inits;
  for (auto [init, argument] :
       llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs()))
    inits.push_back(partOrSame(init, argument));
  auto made = scf::ForOp::create(b, loop.getLoc(),
                                 map.lookupOrDefault(loop.getLowerBound()),
                                 map.lookupOrDefault(loop.getUpperBound()),
                                 map.lookupOrDefault(loop.getStep()), inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  map.map(loop.getBody()->getArguments(), made.getBody()->getArguments());
  {
    OpBuilder::InsertionGuard guard(b);
    if (!made.getBody()->empty())
      made.getBody()->back().erase();
    b.setInsertionPointToEnd(made.getBody());
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    SmallVector<Value> next;
    for (auto [value, argument] :
         llvm::zip(loop.getYieldedValues(), loop.getRegionIterArgs()))
      next.push_back(partOrSame(value, argument));
    scf::YieldOp::create(b, loop.getLoc(), next);
  }
  for (auto [result, argument, local] : llvm::zip(
           loop.getResults(), loop.getRegionIterArgs(), made.getResults())) {
    map.map(result, local);
    if (isTensor(result))
      setPart(result, local, layouts.of(argument));
  }
  return success();
}

LogicalResult Partition::emitBranch(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Value result : branch.getResults())
    types.push_back(isTensor(result) ? partType(result, layouts.of(result))
                                     : result.getType());
  auto made = scf::IfOp::create(b, branch.getLoc(), types,
                                map.lookupOrDefault(branch.getCondition()),
                                branch.elseBlock() != nullptr);
  made->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip(branch->getRegions(), made->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    if (!to.front().empty())
      to.front().back().erase();
    b.setInsertionPointToEnd(&to.front());
    if (failed(emitBlock(from.front())))
      return failure();
    SmallVector<Value> given;
    for (auto [value, result] : llvm::zip(
             from.front().getTerminator()->getOperands(), branch.getResults()))
      given.push_back(isTensor(value) ? part(value, layouts.of(result))
                                      : map.lookupOrDefault(value));
    scf::YieldOp::create(b, branch.getLoc(), given);
  }
  map.map(branch.getResults(), made.getResults());
  return success();
}

} // namespace mgpu::conversion
