// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/Manual.h"

#include "dialect/mgpu/Diagnostics.h"

namespace mgpu::conversion {

using namespace mlir;

static constexpr StringLiteral toShard = "SPMDFullToShardShape";
static constexpr StringLiteral toFull = "SPMDShardToFullShape";

static bool isCallOf(Operation *op, StringRef target) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  return call && call.getCallTargetName() == target;
}

bool isManual(Operation *op) {
  return isa<sdy::ManualComputationOp>(op) || isCallOf(op, toShard) ||
         isCallOf(op, toFull);
}

void inlineBody(Operation *op, Region &body, ValueRange operands) {
  Block &block = body.front();
  for (auto [argument, operand] : llvm::zip(block.getArguments(), operands))
    argument.replaceAllUsesWith(operand);
  Operation *end = block.getTerminator();
  op->replaceAllUsesWith(end->getOperands());
  end->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         block.getOperations());
  op->erase();
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

LogicalResult Manual::checkShape(Operation *op, Value whole, Value part,
                                 const Parts &parts) {
  auto wholeType = dyn_cast<RankedTensorType>(whole.getType());
  auto partType = dyn_cast<RankedTensorType>(part.getType());
  if (!wholeType || !partType || !wholeType.hasStaticShape() ||
      !partType.hasStaticShape())
    return ir::emitUnsupported(op)
           << "has a value whose shape is not static; export the program for "
              "the shapes it is run with";
  std::optional<SmallVector<int64_t>> shape =
      parts.shapeOf(wholeType.getShape());
  if (shape && partType == wholeType.clone(*shape))
    return success();
  return op->emitOpError() << "cannot have " << partType << " as a part of "
                           << wholeType << ", by the sharding of the latter";
}

Value Manual::enter(Value whole, Type part, const Parts &parts) {
  if (parts.isWhole())
    return whole;
  auto border = spmd::FullToShardOp::create(code.b, part, whole);
  borders.insert({border, parts});
  return border;
}

Value Manual::leave(Value part, Type whole, const Parts &parts) {
  if (parts.isWhole())
    return part;
  auto border = spmd::ShardToFullOp::create(code.b, whole, part);
  borders.insert({border, parts});
  return border;
}

LogicalResult Manual::inlineOne(sdy::ManualComputationOp op) {
  code.b.setInsertionPoint(op);
  code.b.setLoc(op.getLoc());
  ArrayRef<StringAttr> axes = op.getManualAxes().getAxes();
  SmallVector<Value> operands;
  for (auto [operand, argument, sharding] :
       llvm::zip(op.getTensors(), op.getBody().getArguments(),
                 op.getInShardings().getShardings())) {
    FailureOr<Parts> parts = partsOf(op, sharding, axes, code.numDevices());
    if (failed(parts) || failed(checkShape(op, operand, argument, *parts)))
      return failure();
    operands.push_back(enter(operand, argument.getType(), *parts));
  }
  Operation *end = op.getBody().front().getTerminator();
  SmallVector<Parts> outs;
  for (auto [result, returned, sharding] :
       llvm::zip(op.getResults(), end->getOperands(),
                 op.getOutShardings().getShardings())) {
    FailureOr<Parts> parts = partsOf(op, sharding, axes, code.numDevices());
    if (failed(parts) || failed(checkShape(op, result, returned, *parts)))
      return failure();
    outs.push_back(*parts);
  }
  code.b.setInsertionPoint(end);
  for (auto [k, parts] : llvm::enumerate(outs))
    end->setOperand(
        k, leave(end->getOperand(k), op->getResult(k).getType(), parts));
  inlineBody(op, op.getBody(), operands);
  return success();
}

/// The sharding of a value whose parts XLA takes.
static StringAttr textOf(Value value, func::FuncOp function) {
  if (Operation *op = value.getDefiningOp())
    return op->getAttrOfType<StringAttr>("mhlo.sharding");
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner()->getParentOp() != function)
    return {};
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               "mhlo.sharding");
}

LogicalResult Manual::replaceCall(stablehlo::CustomCallOp op) {
  if (op.getNumOperands() != 1 || op.getNumResults() != 1)
    return op.emitOpError() << "must have one operand and one result";
  Value from = op.getOperand(0), to = op.getResult(0);
  bool isEntry = op.getCallTargetName() == toShard;
  StringAttr text = isEntry ? textOf(from, function)
                            : op->getAttrOfType<StringAttr>("mhlo.sharding");
  auto type = dyn_cast<RankedTensorType>(to.getType());
  if (!text || !type)
    return ir::emitUnsupported(op)
           << "has no mhlo.sharding that says which part each device has";
  FailureOr<Parts> parts =
      partsOfText(op, text, type.getRank(), code.numDevices());
  if (failed(parts) ||
      failed(checkShape(op, isEntry ? from : to, isEntry ? to : from, *parts)))
    return failure();
  code.b.setInsertionPoint(op);
  code.b.setLoc(op.getLoc());
  to.replaceAllUsesWith(isEntry ? enter(from, type, *parts)
                                : leave(from, type, *parts));
  op.erase();
  return success();
}

LogicalResult Manual::inlineAll() {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isManual(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    auto manual = dyn_cast<sdy::ManualComputationOp>(op);
    if (failed(manual ? inlineOne(manual)
                      : replaceCall(cast<stablehlo::CustomCallOp>(op))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// A value that leaves and enters again with the same parts stays where it is.
void Manual::joinEnds() {
  for (auto &[op, parts] : borders) {
    auto into = dyn_cast<spmd::FullToShardOp>(op);
    auto from = into ? into.getFull().getDefiningOp<spmd::ShardToFullOp>()
                     : spmd::ShardToFullOp();
    if (from && borders.lookup(from) == parts)
      into.getShard().replaceAllUsesWith(from.getShard());
  }
  // Backwards, as what enters uses what leaves.
  SmallVector<std::pair<Operation *, Parts>> all = borders.takeVector();
  for (auto &[op, parts] : llvm::reverse(all))
    if (op->use_empty())
      std::exchange(op, nullptr)->erase();
  for (auto &[op, parts] : all)
    if (op)
      borders.insert({op, parts});
}

/// The layout of an argument of which the function has parts alone, always the
/// same; else null.
spmd::LayoutAttr Manual::layoutOfArgument(BlockArgument argument) {
  const Parts *parts = nullptr;
  for (Operation *user : argument.getUsers()) {
    auto found = borders.find(user);
    if (found == borders.end() || (parts && !(*parts == found->second)))
      return {};
    parts = &found->second;
  }
  return parts ? layoutOf(function.getContext(), *parts) : spmd::LayoutAttr();
}

/// The operation that makes a whole of parts to return it, and for nothing
/// else; else null.
Operation *Manual::borderOfResult(unsigned index) {
  Value value = function.front().getTerminator()->getOperand(index);
  auto border = value.getDefiningOp<spmd::ShardToFullOp>();
  return border && value.hasOneUse() ? border : nullptr;
}

void Manual::placeArguments(ArrayRef<spmd::LayoutAttr> layouts,
                            ArrayRef<Border<spmd::FullToShardOp>> entries) {
  for (auto [into, parts] : entries) {
    auto argument = dyn_cast<BlockArgument>(into.getFull());
    if (argument && argument.getOwner() == &function.front() &&
        layouts[argument.getArgNumber()])
      continue;
    code.b.setInsertionPoint(into);
    code.b.setLoc(into.getLoc());
    into.getShard().replaceAllUsesWith(code.cut(into.getFull(), parts));
    into.erase();
  }
  for (auto [index, layout] : llvm::enumerate(layouts))
    if (layout)
      function.setArgAttr(index, spmd::layoutName, layout);
}

LogicalResult
Manual::placeResults(ArrayRef<spmd::LayoutAttr> layouts,
                     ArrayRef<Border<spmd::ShardToFullOp>> leaves) {
  llvm::SmallPtrSet<Operation *, 8> kept;
  for (auto [index, layout] : llvm::enumerate(layouts))
    if (layout) {
      function.setResultAttr(index, spmd::layoutName, layout);
      kept.insert(borderOfResult(index));
    }
  for (auto [from, parts] : leaves) {
    if (kept.contains(from))
      continue;
    code.b.setInsertionPoint(from);
    code.b.setLoc(from.getLoc());
    Value whole = code.join(from.getShard(), parts);
    if (!whole)
      return ir::emitUnsupported(from)
             << "has parts on devices that are no grid";
    from.getFull().replaceAllUsesWith(whole);
    from.erase();
  }
  return success();
}

LogicalResult Manual::place() {
  joinEnds();
  SmallVector<spmd::LayoutAttr> ofArguments, ofResults;
  for (BlockArgument argument : function.getArguments())
    ofArguments.push_back(layoutOfArgument(argument));
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    Operation *border = borderOfResult(index);
    ofResults.push_back(
        border ? layoutOf(function.getContext(), borders.lookup(border))
               : spmd::LayoutAttr());
    // An argument and its next state lie the same way.
    auto alias =
        function.getResultAttrOfType<IntegerAttr>(index, spmd::aliasName);
    if (alias && ofArguments[alias.getInt()] != ofResults.back())
      ofArguments[alias.getInt()] = ofResults.back() = {};
  }
  SmallVector<Border<spmd::FullToShardOp>> entries;
  SmallVector<Border<spmd::ShardToFullOp>> leaves;
  for (auto &[op, parts] : borders)
    if (auto into = dyn_cast<spmd::FullToShardOp>(op))
      entries.emplace_back(into, parts);
    else
      leaves.emplace_back(cast<spmd::ShardToFullOp>(op), parts);
  if (failed(placeResults(ofResults, leaves)))
    return failure();
  placeArguments(ofArguments, entries);
  return success();
}

} // namespace mgpu::conversion
