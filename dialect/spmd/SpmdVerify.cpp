// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules that the dialect's document lists, under the labels it has there.
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SmallSet.h"

#include <fmt/format.h>

using namespace mlir;
using namespace mgpu::spmd;

using mgpu::ir::rule;

//===----------------------------------------------------------------------===//
// Attributes of functions
//===----------------------------------------------------------------------===//

static LogicalResult checkLayout(Operation *function, Type type,
                                 LayoutAttr layout) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return function->emitError()
           << layoutName << " is for ranked tensors of static shape, not "
           << type << " [layout_c4]";
  if (int64_t(layout.getSplit().size()) != tensor.getRank())
    return function->emitError()
           << "'split' has " << layout.getSplit().size() << " lists; " << type
           << " has " << tensor.getRank() << " dimensions [layout_c5]";
  for (unsigned dim = 0; dim < tensor.getRank(); ++dim)
    if (layout.parts(dim) > 1 && tensor.getDimSize(dim) < layout.parts(dim))
      return function->emitError()
             << "dimension " << dim << " of " << type << " cannot be cut in "
             << layout.parts(dim) << " parts [layout_c6]";
  if (!layout.fits(tensor.getShape()))
    return function->emitError() << "'offsets' must end with the sizes of "
                                 << type << " [layout_c12]";
  if (!layout.getHalos().empty())
    return function->emitError()
           << "an argument or result has parts without 'halos' [layout_c14]";
  return success();
}

/// `spmd.layout` of a value of type `type`, or another attribute of ours.
static LogicalResult checkAttribute(Operation *op, Type type,
                                    NamedAttribute attribute) {
  if (attribute.getName() != layoutName)
    return op->emitError() << attribute.getName().getValue()
                           << " is not an attribute of an argument or result"
                              " [layout_c7]";
  auto layout = dyn_cast<LayoutAttr>(attribute.getValue());
  if (!layout)
    return op->emitError() << layoutName
                           << " must be a #spmd.layout [layout_c7]";
  return checkLayout(op, type, layout);
}

LogicalResult SpmdDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError() << attribute.getName().getValue()
                           << " is for arguments of functions [layout_c7]";
  return checkAttribute(op, function.getArgumentTypes()[index], attribute);
}

LogicalResult SpmdDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError() << attribute.getName().getValue()
                           << " is for results of functions [layout_c7]";
  Type type = function.getResultTypes()[index];
  if (attribute.getName() != aliasName)
    return checkAttribute(op, type, attribute);
  auto argument = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!argument || !argument.getType().isSignlessInteger(64) ||
      argument.getInt() < 0 || argument.getInt() >= function.getNumArguments())
    return op->emitError() << aliasName << " of result " << index
                           << " must be the number of an argument [layout_c8]";
  for (unsigned other = 0; other < index; ++other)
    if (function.getResultAttr(other, aliasName) == argument)
      return op->emitError() << "results " << other << " and " << index
                             << " are both the next state of argument "
                             << argument.getInt() << " [layout_c10]";
  // Tensors of other dialects, as on meshes, become ranked ones.
  if (!isa<ShapedType>(type) || isa<BaseMemRefType>(type))
    return op->emitError() << aliasName << " is for tensors, not " << type
                           << " [layout_c8]";
  unsigned at = argument.getInt();
  if (function.getArgumentTypes()[at] != type ||
      function.getArgAttr(at, layoutName) !=
          function.getResultAttr(index, layoutName))
    return op->emitError() << "result " << index << " and argument " << at
                           << ", which it is the next state of, must have the "
                              "same type and layout [layout_c9]";
  return success();
}

//===----------------------------------------------------------------------===//
// The whole and its shards
//===----------------------------------------------------------------------===//

/// Rules `number` (shape) and `number` + 1 (element type).
static LogicalResult checkShard(Operation *op, Value full, Value shard,
                                LayoutAttr layout, unsigned number) {
  auto fullType = cast<ShapedType>(full.getType());
  auto shardType = cast<ShapedType>(shard.getType());
  SmallVector<int64_t> expected = layout && layout.fits(fullType.getShape())
                                      ? layout.shardShape(fullType.getShape())
                                      : llvm::to_vector(fullType.getShape());
  if (shardType.getShape() != ArrayRef(expected))
    return op->emitOpError()
           << "must have a shard of shape "
           << RankedTensorType::get(expected, fullType.getElementType())
           << ", not " << shardType << rule(op, number);
  if (fullType.getElementType() != shardType.getElementType())
    return op->emitOpError()
           << "must keep the element type" << rule(op, number + 1);
  return success();
}

LogicalResult LayoutConstraintOp::verify() {
  auto type = cast<RankedTensorType>(getTensor().getType());
  bool fits = type.hasStaticShape() && getLayout().fits(type.getShape());
  for (int64_t dim : getOpen().value_or(ArrayRef<int64_t>()))
    fits &= dim >= 0 && dim < type.getRank();
  if (auto priorities = getPriorities())
    fits &= int64_t(priorities->size()) == type.getRank() &&
            llvm::all_of(*priorities, [](int64_t each) { return each >= 0; });
  if (!fits)
    return emitOpError() << "has a layout that " << type << " cannot have"
                         << rule(*this, 1);
  return success();
}

LogicalResult SameLayoutOp::verify() {
  auto type = cast<RankedTensorType>(getTensor().getType());
  bool fits = type.hasStaticShape();
  if (auto function = (*this)->getParentOfType<FunctionOpInterface>())
    function->walk([&](SameLayoutOp other) {
      auto shaped = cast<RankedTensorType>(other.getTensor().getType());
      fits &= other.getGroup() != getGroup() ||
              shaped.getShape() == type.getShape();
    });
  if (!fits)
    return emitOpError() << "is of a group whose tensors have different or "
                            "dynamic shapes"
                         << rule(*this, 1);
  return success();
}

LogicalResult OnOp::verify() {
  int64_t first = getFirst(), end = getEnd();
  if (first < 0 || first >= end || end > mostDevices)
    return emitOpError() << "has no device in " << first << " to " << end
                         << rule(*this, 1);
  auto outer = (*this)->getParentOfType<OnOp>();
  if (outer &&
      (first < int64_t(outer.getFirst()) || end > int64_t(outer.getEnd())))
    return emitOpError() << "names devices that do not run the 'spmd.on' "
                            "around it, "
                         << outer.getFirst() << " to " << outer.getEnd()
                         << rule(*this, 2);
  if (getYield().getOperandTypes() != getResultTypes())
    return emitOpError() << "must yield values of the types of its results"
                         << rule(*this, 3);
  return success();
}

LogicalResult CallOp::verify() {
  SmallVector<LayoutAttr> layouts;
  llvm::append_range(layouts, getInLayouts().getAsRange<LayoutAttr>());
  llvm::append_range(layouts, getOutLayouts().getAsRange<LayoutAttr>());
  if (getInLayouts().size() != getNumOperands() ||
      getOutLayouts().size() != getNumResults() || layouts.empty())
    return emitOpError() << "must have a layout for each operand and result, "
                            "and at least one"
                         << rule(*this, 1);
  for (LayoutAttr layout : layouts)
    if (!layout.getFirst() ||
        layout.firstDevice() != layouts[0].firstDevice() ||
        layout.endDevice() != layouts[0].endDevice())
      return emitOpError() << "must have layouts with 'first' and of the same "
                              "devices"
                           << rule(*this, 1);
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCallee()
                         << ", which is not a function of the module"
                         << rule(*this, 2);
  auto areShards = [](ValueRange parts, ArrayRef<Type> whole,
                      ArrayAttr layouts) {
    if (parts.size() != whole.size())
      return false;
    for (auto [part, type, each] : llvm::zip(parts, whole, layouts)) {
      auto full = dyn_cast<RankedTensorType>(type);
      auto layout = cast<LayoutAttr>(each);
      if (!full || !layout.fits(full.getShape()) ||
          part.getType() != full.clone(layout.shardShape(full.getShape())))
        return false;
    }
    return true;
  };
  if (!areShards(getInputs(), callee.getArgumentTypes(), getInLayouts()) ||
      !areShards(getOutputs(), callee.getResultTypes(), getOutLayouts()))
    return emitOpError() << "has operands or results that are not shards, "
                            "under their layouts, of those of "
                         << getCallee() << rule(*this, 3);
  return success();
}

/// Whether `shaped` has the shape of a shard of a tensor of shape `full`.
static bool isShard(Value shaped, LayoutAttr layout, ArrayRef<int64_t> full) {
  auto type = cast<ShapedType>(shaped.getType());
  return layout.fits(full) && type.getRank() == int64_t(full.size()) &&
         type.getShape() == ArrayRef(layout.shardShape(full));
}

LogicalResult MoveOp::verify() {
  bool isOfAll = !getFrom().getFirst() && !getTo().getFirst();
  if (isOfAll ? getFrom().getMesh() != getTo().getMesh()
              : !getFrom().getFirst() || !getTo().getFirst())
    return emitOpError() << "must have layouts on one mesh, or both with "
                            "'first'"
                         << rule(*this, 1);
  if (!isShard(getInput(), getFrom(), getFull()))
    return emitOpError() << "must have an input that is a shard under 'from'"
                         << rule(*this, 2);
  if (!isShard(getInit(), getTo(), getFull()))
    return emitOpError() << "must have an init that is a shard under 'to'"
                         << rule(*this, 3);
  if (getElementTypeOrSelf(getInput()) != getElementTypeOrSelf(getInit()))
    return emitOpError() << "must keep the element type" << rule(*this, 4);
  return success();
}

LogicalResult FullToShardOp::verify() {
  auto argument = dyn_cast<BlockArgument>(getFull());
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : nullptr;
  if (!function || !argument.getOwner()->isEntryBlock())
    return emitOpError() << "takes an argument of the function"
                         << rule(*this, 1);
  return checkShard(*this, getFull(), getShard(), layoutOf(function, argument),
                    2);
}

LogicalResult ShardToFullOp::verify() {
  if (getFull().use_empty())
    return emitOpError() << "must have a result that is returned"
                         << rule(*this, 1);
  for (OpOperand &use : getFull().getUses()) {
    auto function =
        dyn_cast<FunctionOpInterface>(use.getOwner()->getParentOp());
    if (!function || !use.getOwner()->hasTrait<OpTrait::ReturnLike>())
      return emitOpError() << "must have a result that is returned"
                           << rule(*this, 1);
    unsigned result = use.getOperandNumber();
    if (result < function.getNumResults() && // else its own verifier says so
        failed(checkShard(*this, getFull(), getShard(),
                          layoutOfResult(function, result), 2)))
      return failure();
  }
  return success();
}

LogicalResult CustomCallOp::verify() {
  if (getInits().empty())
    return emitOpError("gives nothing") << rule(*this, 1);
  if (bool(getSource()) != bool(getEntry()))
    return emitOpError("has 'source' or 'entry' without the other")
           << rule(*this, 2);
  if (getRegisteredAttr() && getSource())
    return emitOpError("is registered, and has the kernel ")
           << getSourceAttr() << rule(*this, 5);
  if (std::optional<ArrayRef<int64_t>> kept = getKept())
    for (auto [k, number] : llvm::enumerate(*kept))
      if (number < 0 || size_t(number) >= getInits().size() ||
          llvm::is_contained(kept->take_front(k), number))
        return emitOpError("keeps init ")
               << number << " of " << getInits().size() << rule(*this, 3);
  for (Value operand : getOperands())
    if (!cast<ShapedType>(operand.getType()).hasStaticShape())
      return emitOpError("has an operand of type ")
             << operand.getType() << ", whose sizes are not static"
             << rule(*this, 4);
  return success();
}

LogicalResult DistributeOp::verify() {
  return checkShard(*this, getInput(), getInit(), getLayout(), 1);
}

LogicalResult CollectOp::verify() {
  return checkShard(*this, getInit(), getInput(), getLayout(), 1);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Whether the groups are of one size, and no device is in two. The number of
/// all devices is known when the program is spread over them.
static LogicalResult checkGroups(Operation *op, ArrayAttr groups,
                                 unsigned number) {
  if (!groups)
    return success();
  llvm::SmallSet<int64_t, 16> seen; // which any number may be in
  size_t size = 0;
  for (Attribute group : groups) {
    auto devices = dyn_cast<DenseI64ArrayAttr>(group);
    if (!devices || devices.empty() || (size && devices.size() != int(size)))
      return op->emitOpError()
             << "must have groups of the same size, of one device or more"
             << rule(op, number);
    size = devices.size();
    for (int64_t device : devices.asArrayRef())
      if (device < 0 || !seen.insert(device).second)
        return op->emitOpError()
               << "has device " << device
               << " twice in its groups, or it is negative" << rule(op, number);
  }
  if (groups.empty())
    return op->emitOpError()
           << "must have at least one group" << rule(op, number);
  return success();
}

/// The size of a group where the operation says it; else nothing.
static std::optional<int64_t> groupSize(ArrayAttr groups) {
  if (!groups)
    return std::nullopt;
  return cast<DenseI64ArrayAttr>(groups[0]).size();
}

static LogicalResult checkElements(Operation *op, Value input, Value init,
                                   unsigned number) {
  if (getElementTypeOrSelf(input) != getElementTypeOrSelf(init))
    return op->emitOpError()
           << "must have one element type in ins and outs" << rule(op, number);
  return success();
}

/// Rules `number` (shape) and `number` + 1 (element type).
static LogicalResult checkSame(Operation *op, Value input, Value init,
                               unsigned number) {
  if (cast<ShapedType>(input.getType()).getShape() !=
      cast<ShapedType>(init.getType()).getShape())
    return op->emitOpError()
           << "must have one shape in ins and outs" << rule(op, number);
  return checkElements(op, input, init, number + 1);
}

/// Whether `large` is `small` with dimension `axis` times the size of a group:
/// rules 1 (axis), 2 (shapes) and 3 (element types).
static LogicalResult checkParts(Operation *op, Value large, Value small,
                                int64_t axis, ArrayAttr groups) {
  auto largeType = cast<ShapedType>(large.getType());
  auto smallType = cast<ShapedType>(small.getType());
  if (axis < 0 || axis >= smallType.getRank())
    return op->emitOpError() << "has no dimension " << axis << rule(op, 1);
  auto wrong = [&] {
    return op->emitOpError()
           << "must have sizes that differ in dimension " << axis
           << " alone, there by the size of a group, not " << smallType
           << " and " << largeType << rule(op, 2);
  };
  if (largeType.getRank() != smallType.getRank())
    return wrong();
  for (int64_t dim = 0; dim < smallType.getRank(); ++dim) {
    int64_t part = smallType.getDimSize(dim), all = largeType.getDimSize(dim);
    if (dim != axis ? part != all
                    : part == 0 || all % part ||
                          all / part != groupSize(groups).value_or(all / part))
      return wrong();
  }
  return checkElements(op, large, small, 3);
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkGroups(*this, getGroupsAttr(), 3)))
    return failure();
  return checkSame(*this, getInput(), getInit(), 1);
}

LogicalResult AllGatherOp::verify() {
  if (failed(checkGroups(*this, getGroupsAttr(), 4)))
    return failure();
  return checkParts(*this, getInit(), getInput(), getAxis(), getGroupsAttr());
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(checkGroups(*this, getGroupsAttr(), 4)))
    return failure();
  return checkParts(*this, getInput(), getInit(), getAxis(), getGroupsAttr());
}

LogicalResult AllToAllOp::verify() {
  if (failed(checkGroups(*this, getGroupsAttr(), 5)))
    return failure();
  auto input = cast<ShapedType>(getInput().getType());
  auto init = cast<ShapedType>(getInit().getType());
  int64_t rank = input.getRank(), split = getSplit(), concat = getConcat();
  if (split < 0 || split >= rank || concat < 0 || concat >= rank)
    return emitOpError() << "splits and concatenates dimensions of its input"
                         << rule(*this, 1);
  if (std::optional<int64_t> size = groupSize(getGroupsAttr())) {
    SmallVector<int64_t> expected(input.getShape());
    if (expected[split] % *size != 0)
      return emitOpError() << "cannot split dimension " << split << " of "
                           << input << " into " << *size << rule(*this, 2);
    expected[split] /= *size;
    expected[concat] *= *size;
    if (init.getShape() != ArrayRef(expected))
      return emitOpError() << "must give "
                           << RankedTensorType::get(expected,
                                                    input.getElementType())
                           << rule(*this, 3);
  }
  return checkElements(*this, getInput(), getInit(), 4);
}

LogicalResult BroadcastOp::verify() {
  if (failed(checkGroups(*this, getGroupsAttr(), 4)))
    return failure();
  int64_t root = getRoot();
  if (root < 0 || root >= groupSize(getGroupsAttr()).value_or(root + 1))
    return emitOpError() << "has no rank " << root << " in its groups"
                         << rule(*this, 1);
  return checkSame(*this, getInput(), getInit(), 2);
}

LogicalResult PermuteOp::verify() {
  llvm::SmallSet<int64_t, 16> sources, targets;
  for (Attribute each : getPairs()) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(each);
    if (!pair || pair.size() != 2 || pair[0] < 0 || pair[1] < 0)
      return emitOpError() << "must have pairs of two devices"
                           << rule(*this, 1);
    if (!sources.insert(pair[0]).second)
      return emitOpError() << "sends from device " << pair[0] << " twice"
                           << rule(*this, 2);
    if (!targets.insert(pair[1]).second)
      return emitOpError() << "sends to device " << pair[1] << " twice"
                           << rule(*this, 3);
  }
  return checkSame(*this, getInput(), getInit(), 4);
}

/// Whether all elements that the map names are in a buffer of that type.
static bool isInside(ShapedType type, AffineMap map, ArrayRef<int64_t> sizes) {
  if (!type.hasStaticShape() || int64_t(map.getNumResults()) != type.getRank())
    return false;
  MLIRContext *context = map.getContext();
  for (auto [index, extent] :
       llvm::zip_equal(map.getResults(), type.getShape())) {
    // Linear: the least and the largest are at ends of the dimensions.
    AffineExpr least = index, most = index;
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      auto at = [&](AffineExpr in, int64_t value) {
        return in.replace(getAffineDimExpr(unsigned(dim), context),
                          getAffineConstantExpr(value, context));
      };
      AffineExpr low = at(most, 0), high = at(most, size - 1);
      auto slope = dyn_cast<AffineConstantExpr>(
          simplifyAffineExpr(high - low, map.getNumDims(), 0));
      if (!slope)
        return false;
      most = slope.getValue() < 0 ? low : high;
      least = at(least, slope.getValue() < 0 ? size - 1 : 0);
    }
    auto low = dyn_cast<AffineConstantExpr>(least),
         high = dyn_cast<AffineConstantExpr>(most);
    if (!low || !high || low.getValue() < 0 || high.getValue() >= extent)
      return false;
  }
  return true;
}

LogicalResult AttentionOp::verify() {
  SmallVector<int64_t> sizes(getOf().getBatch());
  const size_t batch = sizes.size();
  sizes.append({getOf().getQueries(), getOf().getKeys(), getOf().getHead(),
                getOf().getValue()});
  SmallVector<AffineMap> maps;
  for (Attribute each : getOf().getMaps())
    maps.push_back(cast<AffineMapAttr>(each).getValue());
  AffineMap ofInit = maps.pop_back_val();
  for (Attribute each : getExtras())
    maps.push_back(cast<AffineMapAttr>(each).getValue());
  if (getInputs().size() != maps.size())
    return emitOpError() << "has " << getInputs().size() << " inputs and "
                         << maps.size() << " maps of inputs" << rule(*this, 1);
  SmallVector<Type> types;
  for (auto [input, map] : llvm::zip_equal(getInputs(), maps)) {
    if (map.getNumDims() != sizes.size() || map.getNumSymbols() != 0)
      return emitOpError() << "has a map of " << map.getNumDims()
                           << " indices; an attention has " << sizes.size()
                           << rule(*this, 1);
    types.push_back(getElementTypeOrSelf(input));
  }
  Block &body = getBody().front();
  auto end = dyn_cast_or_null<ScoreOp>(body.empty() ? nullptr : &body.back());
  const size_t extras = maps.size() - 3, indices = batch + 2;
  bool fits = end && body.getNumArguments() == 1 + extras + indices &&
              isa<FloatType>(body.getArgument(0).getType());
  for (auto [k, argument] : llvm::enumerate(body.getArguments()))
    if (fits && k > 0)
      fits = argument.getType() ==
             (k <= extras ? types[k + 2] : Builder(*this).getIndexType());
  if (!fits || !isa<FloatType>(types[0]) || !isa<FloatType>(types[1]) ||
      !isa<FloatType>(types[2]) ||
      !isa<FloatType>(getElementTypeOrSelf(getInit())))
    return emitOpError() << "has a body of other numbers than a product, "
                         << extras << " further elements and " << indices
                         << " indices" << rule(*this, 2);
  SmallVector<Value> shaped(getInputs());
  shaped.push_back(getInit());
  maps.push_back(ofInit);
  for (auto [value, map] : llvm::zip_equal(shaped, maps))
    if (!isInside(cast<ShapedType>(value.getType()), map, sizes))
      return emitOpError() << "reads or writes elements that "
                           << value.getType() << " does not have"
                           << rule(*this, 3);
  return success();
}
