// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of collectives, tuples and barriers. How many devices there are is not
// known here.
#include "dialect/stablehlo/StablehloRules.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mgpu::stablehlo;

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
/// A collective's rules for its groups.
struct GroupRules {
  bool sameSize = true;           ///< no -1, which fills up a shorter group
  bool allDevices = true;         ///< each device is in a group
  bool globalIds = false;         ///< numbers are of devices
  ChannelHandleAttr channel = {}; ///< or null
};
} // namespace

/// Whether the groups have each device once. Axes of a mesh are looked up where
/// they are lowered.
static LogicalResult checkGroups(Operation *op, Attribute groups,
                                 const GroupRules &rules) {
  if (rules.globalIds && (!rules.channel || rules.channel.getHandle() <= 0))
    return op->emitOpError()
           << "must have a channel of a positive number for global device ids";
  auto ids = dyn_cast<DenseIntElementsAttr>(groups);
  if (!ids)
    return success();
  if (ids.getType().getRank() != 2)
    return op->emitOpError()
           << "must have replica groups of rank 2, not " << ids.getType();
  if (rules.globalIds && ids.getNumElements() == 0)
    return op->emitOpError() << "must have groups for global device ids";
  llvm::SmallSet<int64_t, 16> seen; // which any number may be in
  int64_t largest = -1;
  for (int64_t id : ids.getValues<int64_t>()) {
    if (id == -1 && !rules.sameSize)
      continue;
    if (id < 0)
      return op->emitOpError() << "has device " << id << " in a group";
    if (!seen.insert(id).second)
      return op->emitOpError() << "has device " << id << " in a group twice";
    largest = std::max(largest, id);
  }
  if (rules.allDevices && largest + 1 != int64_t(seen.size()))
    return op->emitOpError()
           << "must have each of the devices 0 to " << largest << " in a group";
  return success();
}

/// One result for each operand.
static LogicalResult checkResultCount(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError() << "must have an operand at least";
  return checkCount(op, "the result", op->getNumResults(),
                    op->getNumOperands());
}

/// Each result has the type of its operand.
static LogicalResult checkSameTypes(Operation *op, ValueRange operands) {
  if (operands.empty())
    return op->emitOpError() << "must have an operand at least";
  if (failed(
          checkCount(op, "the result", op->getNumResults(), operands.size())))
    return failure();
  for (auto [operand, result] : llvm::zip(operands, op->getResults()))
    if (failed(checkResult(op, result, shapeOf(operand), elementOf(operand))))
      return failure();
  return success();
}

/// Whether the elements of `operand` may be combined as those of `result`.
static LogicalResult checkPromotes(Operation *op, Value operand, Value result) {
  if (isPromotable(elementOf(operand), elementOf(result)))
    return success();
  return op->emitOpError() << "combines elements of type " << elementOf(operand)
                           << " as " << elementOf(result)
                           << ", which must be the same kind of number and no "
                              "narrower";
}

/// Whether `large` is `small` with dimension `dim` some times as long.
static LogicalResult checkTimes(Operation *op, Value large, Value small,
                                int64_t dim) {
  ArrayRef<int64_t> largeShape = shapeOf(large), smallShape = shapeOf(small);
  if (failed(checkDims(op, "the dimension", {dim}, smallShape.size())))
    return failure();
  bool fits = largeShape.size() == smallShape.size();
  for (int64_t each = 0; fits && each < int64_t(smallShape.size()); ++each) {
    int64_t whole = largeShape[each], part = smallShape[each];
    if (each != dim || isDynamic(whole) || isDynamic(part))
      fits = sizesAgree(whole, part);
    else
      fits = part != 0 ? whole % part == 0 : whole == 0;
  }
  if (fits)
    return success();
  return op->emitOpError() << "must have sizes that differ in dimension " << dim
                           << " alone, there by a factor, not "
                           << small.getType() << " and " << large.getType();
}

LogicalResult AllGatherOp::verify() {
  if (failed(checkGroups(*this, getReplicaGroups(),
                         {.globalIds = getUseGlobalDeviceIds(),
                          .channel = getChannelHandleAttr()})) ||
      failed(checkResultCount(*this)))
    return failure();
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (failed(checkTimes(*this, result, operand, getAllGatherDim())) ||
        failed(checkResult(*this, result, shapeOf(result), elementOf(operand))))
      return failure();
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkGroups(*this, getReplicaGroups(),
                         {.sameSize = false,
                          .globalIds = getUseGlobalDeviceIds(),
                          .channel = getChannelHandleAttr()})) ||
      failed(checkResultCount(*this)))
    return failure();
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (failed(checkResult(*this, result, shapeOf(operand))) ||
        failed(checkPromotes(*this, operand, result)))
      return failure();
  Type element = elementOf(getResult(0));
  return checkComputation(*this, getComputation(), {element, element}, element);
}

LogicalResult AllToAllOp::verify() {
  if (failed(checkGroups(*this, getReplicaGroups(), {})) ||
      failed(checkResultCount(*this)))
    return failure();
  int64_t split = getSplitDimension(), concat = getConcatDimension();
  int64_t count = getSplitCount();
  for (auto [operand, result] : llvm::zip(getOperands(), getResults())) {
    Shape shape(shapeOf(operand));
    if (failed(checkDims(*this, "split_dimension", {split}, shape.size())) ||
        failed(checkDims(*this, "concat_dimension", {concat}, shape.size())))
      return failure();
    if (count < 1 || (!isDynamic(shape[split]) && shape[split] % count != 0))
      return emitOpError() << "cannot split dimension " << split << " of "
                           << operand.getType() << " into " << count;
    if (!isDynamic(shape[split]))
      shape[split] /= count;
    if (!isDynamic(shape[concat]))
      shape[concat] *= count;
    if (failed(checkResult(*this, result, shape, elementOf(operand))))
      return failure();
  }
  if (auto ids = dyn_cast<DenseIntElementsAttr>(getReplicaGroups()))
    return checkCount(*this, "a group", ids.getType().getDimSize(1), count);
  return success();
}

LogicalResult CollectiveBroadcastOp::verify() {
  if (failed(checkGroups(*this, getReplicaGroups(), {.allDevices = false})))
    return failure();
  ValueRange operands = getOperands();
  if (!getHasDynamicRoot())
    return checkSameTypes(*this, operands);
  if (operands.size() < 2 ||
      !shapesAgree(shapeOf(operands.back()), {int64_t(operands.size()) - 1}) ||
      !isa<IntegerType>(elementOf(operands.back())))
    return emitOpError() << "must have a root for each other operand as its "
                            "last operand";
  return checkSameTypes(*this, operands.drop_back());
}

LogicalResult CollectivePermuteOp::verify() {
  DenseIntElementsAttr pairs = getSourceTargetPairs();
  if (pairs.getType().getRank() != 2 || pairs.getType().getDimSize(1) != 2)
    return emitOpError() << "must have pairs of source and target, not "
                         << pairs.getType();
  llvm::SmallSet<int64_t, 16> ends[2];
  for (auto [index, device] : llvm::enumerate(pairs.getValues<int64_t>())) {
    if (device < 0)
      return emitOpError() << "has device " << device << " in a pair";
    if (!ends[index % 2].insert(device).second)
      return emitOpError() << "has device " << device << " as "
                           << (index % 2 ? "target" : "source")
                           << " of two pairs";
  }
  return checkSameTypes(*this, getOperands());
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(checkGroups(*this, getReplicaGroups(),
                         {.globalIds = getUseGlobalDeviceIds(),
                          .channel = getChannelHandleAttr()})) ||
      failed(checkTimes(*this, getOperand(), getResult(),
                        getScatterDimension())) ||
      failed(checkPromotes(*this, getOperand(), getResult())))
    return failure();
  Type element = elementOf(getResult());
  return checkComputation(*this, getComputation(), {element, element}, element);
}

LogicalResult PartitionIdOp::verify() {
  return checkScalar(*this, "the result", getResult());
}
LogicalResult ReplicaIdOp::verify() {
  return checkScalar(*this, "the result", getResult());
}

//===----------------------------------------------------------------------===//
// Barriers and tuples
//===----------------------------------------------------------------------===//

LogicalResult OptimizationBarrierOp::verify() {
  if (llvm::equal(getOperandTypes(), getResultTypes()))
    return success();
  return emitOpError() << "must give values of the types it takes";
}

LogicalResult TupleOp::verify() {
  auto tuple = cast<TupleType>(getResult().getType());
  if (llvm::equal(tuple.getTypes(), getOperandTypes()))
    return success();
  return emitOpError() << "must give a tuple of what it takes";
}

LogicalResult GetTupleElementOp::verify() {
  auto tuple = cast<TupleType>(getOperand().getType());
  if (getIndex() >= tuple.size())
    return emitOpError() << "takes element " << getIndex() << " of a tuple of "
                         << tuple.size();
  if (tuple.getType(getIndex()) != getResult().getType())
    return emitOpError() << "must give " << tuple.getType(getIndex());
  return success();
}
