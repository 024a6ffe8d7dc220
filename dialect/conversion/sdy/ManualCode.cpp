// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/ManualCode.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mgpu::conversion {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Numbers of the device
//===----------------------------------------------------------------------===//

Value DeviceCode::constant(int64_t value) {
  auto type = RankedTensorType::get({}, b.getI64Type());
  return stablehlo::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

Value DeviceCode::deviceNumber() {
  if (number)
    return number;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.front());
  Value index = spmd::DeviceIndexOp::create(b, b.getIndexType());
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), index);
  return number = tensor::FromElementsOp::create(
             b, RankedTensorType::get({}, b.getI64Type()), integer);
}

Value DeviceCode::chosen(ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return constant(values[0]);
  Value device = deviceNumber();
  // Most often (device / a) % b * c, which is folded for each device.
  int64_t n = values.size();
  for (int64_t inner = 1; inner < n; ++inner)
    for (int64_t count = 2; n % inner == 0 && count <= n / inner; ++count) {
      int64_t step = values[inner];
      if (!llvm::all_of(llvm::enumerate(values), [&](auto each) {
            return each.value() == int64_t(each.index()) / inner % count * step;
          }))
        continue;
      Value at = device;
      if (inner > 1)
        at = stablehlo::DivOp::create(b, at.getType(), at, constant(inner));
      if (inner * count < n)
        at = stablehlo::RemOp::create(b, at.getType(), at, constant(count));
      return step == 1
                 ? at
                 : stablehlo::MulOp::create(b, at.getType(), at, constant(step))
                       .getResult();
    }
  auto type = RankedTensorType::get({n}, b.getI64Type());
  Value table =
      stablehlo::ConstantOp::create(b, DenseElementsAttr::get(type, values));
  return entryAt(table, device);
}

//===----------------------------------------------------------------------===//
// Parts of tensors
//===----------------------------------------------------------------------===//

Value DeviceCode::reshape(Value input, ArrayRef<int64_t> shape) {
  if (tensorOf(input).getShape() == shape)
    return input;
  return stablehlo::ReshapeOp::create(b, tensorOf(input).clone(shape), input);
}

Value DeviceCode::part(Value whole, ValueRange starts,
                       ArrayRef<int64_t> sizes) {
  return stablehlo::DynamicSliceOp::create(b, tensorOf(whole).clone(sizes),
                                           whole, starts, sizes);
}

Value DeviceCode::entryAt(Value stacked, Value index) {
  SmallVector<int64_t> sizes(tensorOf(stacked).getShape());
  SmallVector<Value> starts(sizes.size());
  starts[0] = index;
  for (Value &start : MutableArrayRef(starts).drop_front())
    start = constant(0);
  sizes[0] = 1;
  return reshape(part(stacked, starts, sizes), ArrayRef(sizes).drop_front());
}

Value DeviceCode::entry(Value stacked, int64_t index) {
  auto type = tensorOf(stacked);
  SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> limits(type.getShape());
  starts[0] = index;
  limits[0] = index + 1;
  SmallVector<int64_t> sizes(type.getShape());
  sizes[0] = 1;
  Value one = stablehlo::SliceOp::create(b, type.clone(sizes), stacked, starts,
                                         limits, strides);
  return reshape(one, ArrayRef(sizes).drop_front());
}

Value DeviceCode::zeros(RankedTensorType type) {
  return stablehlo::ConstantOp::create(
      b, DenseElementsAttr::get(
             type, isa<FloatType>(type.getElementType())
                       ? Attribute(b.getFloatAttr(type.getElementType(), 0))
                       : Attribute(IntegerAttr::get(
                             type.getElementType(),
                             APInt(type.getElementTypeBitWidth(), 0)))));
}

Value DeviceCode::cut(Value whole, const Parts &parts) {
  if (parts.isWhole())
    return whole;
  SmallVector<int64_t> sizes = *parts.shapeOf(tensorOf(whole).getShape());
  SmallVector<Value> starts;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    starts.push_back(chosen(llvm::map_to_vector(
        parts.of, [&](const auto &of) { return of[dim] * sizes[dim]; })));
  return part(whole, starts, sizes);
}

Value DeviceCode::join(Value part, const Parts &parts) {
  for (unsigned dim = 0; dim < parts.counts.size(); ++dim) {
    if (parts.counts[dim] == 1)
      continue;
    std::optional<spmd::DeviceGroups> groups = parts.groupsAlong(dim);
    if (!groups)
      return {};
    part = allGather(part, dim, *groups);
  }
  return part;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

ArrayAttr DeviceCode::listOf(const spmd::DeviceGroups &groups) {
  return b.getArrayAttr(
      llvm::map_to_vector(groups, [&](const auto &group) -> Attribute {
        return b.getDenseI64ArrayAttr(group);
      }));
}

ArrayAttr DeviceCode::attributeOf(const spmd::DeviceGroups &groups) {
  if (groups.size() == 1 && int64_t(groups[0].size()) == devices &&
      llvm::is_sorted(groups[0]))
    return {};
  return listOf(groups);
}

Collectives DeviceCode::among(const spmd::DeviceGroups &groups) {
  return Collectives(b, b.getLoc(), attributeOf(groups), groups[0].size());
}

Value DeviceCode::allGather(Value input, int64_t axis,
                            const spmd::DeviceGroups &groups) {
  return among(groups).allGather(input, axis);
}

Value DeviceCode::allReduce(Value input, ir::ReductionKind kind,
                            const spmd::DeviceGroups &groups) {
  Value init = tensor::EmptyOp::create(b, tensorOf(input).getShape(),
                                       tensorOf(input).getElementType());
  return spmd::AllReduceOp::create(b, TypeRange(init.getType()), kind, input,
                                   init, attributeOf(groups))
      ->getResult(0);
}

Value DeviceCode::reduceScatter(Value input, ir::ReductionKind kind,
                                int64_t axis,
                                const spmd::DeviceGroups &groups) {
  return among(groups).reduceScatter(input, kind, axis);
}

Value DeviceCode::allToAll(Value input, int64_t split, int64_t concat,
                           const spmd::DeviceGroups &groups) {
  return among(groups).allToAll(input, split, concat);
}

Value DeviceCode::broadcast(Value input, const spmd::DeviceGroups &groups) {
  return among(groups).broadcast(input, 0);
}

Value DeviceCode::permute(Value input, const spmd::DeviceGroups &pairs) {
  return conversion::permute(b, b.getLoc(), input, listOf(pairs));
}

Value DeviceCode::stack(Value input, const spmd::DeviceGroups &groups) {
  SmallVector<int64_t> shape(tensorOf(input).getShape());
  shape.insert(shape.begin(), 1);
  return allGather(reshape(input, shape), 0, groups);
}

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
