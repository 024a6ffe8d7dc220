// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reduction that spmd has no name for is a gather, after which each member
// combines the tensors in rank order.
#include "dialect/conversion/sdy/CollectiveLowering.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

GroupIds groupIdsOf(stablehlo::ChannelHandleAttr channel, bool useGlobalIds,
                    bool ofPartitions) {
  if (useGlobalIds)
    return GroupIds::Devices;
  if (!channel || channel.getHandle() <= 0)
    return GroupIds::Replicas;
  return ofPartitions ? GroupIds::Partitions
                      : GroupIds::ReplicasOfAllPartitions;
}

/// The mesh written in place, as one of Shardy's.
static sdy::MeshAttr meshOf(Operation *op, Attribute mesh) {
  auto inPlace = dyn_cast<stablehlo::MeshAttr>(mesh);
  if (!inPlace)
    return sdy::meshOf(op, mesh);
  SmallVector<sdy::MeshAxisAttr> axes;
  for (stablehlo::MeshAxisAttr axis : inPlace.getAxes())
    axes.push_back(sdy::MeshAxisAttr::get(op->getContext(), axis.getName(),
                                          axis.getSize()));
  SmallVector<int64_t> devices;
  if (DenseIntElementsAttr ids = inPlace.getDeviceIds())
    devices = llvm::to_vector(ids.getValues<int64_t>());
  return sdy::MeshAttr::get(op->getContext(), axes, devices);
}

static FailureOr<spmd::DeviceGroups>
groupsOfMesh(Operation *op, stablehlo::ReplicaGroupMeshAxesAttr groups,
             ProcessGrid grid) {
  sdy::MeshAttr mesh = meshOf(op, groups.getMesh());
  SmallVector<sdy::AxisRefAttr> axes;
  for (stablehlo::AxisRefAttr axis : groups.getAxes())
    axes.push_back(sdy::AxisRefAttr::get(op->getContext(), axis.getName(),
                                         axis.getPreSize(), axis.getSize()));
  std::optional<spmd::DeviceGroups> found =
      mesh ? groupsAlong(mesh, axes) : std::nullopt;
  if (!found)
    return op->emitOpError()
           << "names a mesh or an axis that is not there: " << groups;
  if (mesh.numDevices() != grid.devices())
    return op->emitOpError() << "has a mesh of " << mesh.numDevices()
                             << " devices in a program for " << grid.devices();
  return *found;
}

FailureOr<spmd::DeviceGroups> groupsOf(Operation *op, Attribute groups,
                                       GroupIds ids, ProcessGrid grid) {
  if (auto axes = dyn_cast<stablehlo::ReplicaGroupMeshAxesAttr>(groups))
    return groupsOfMesh(op, axes, grid);
  auto matrix = cast<DenseIntElementsAttr>(groups);
  int64_t width = matrix.getType().getDimSize(1), largest = -1;
  spmd::DeviceGroups named;
  for (auto [k, id] : llvm::enumerate(matrix.getValues<int64_t>())) {
    if (k % width == 0)
      named.emplace_back();
    if (id >= 0)
      named.back().push_back(id);
    largest = std::max(largest, id);
  }
  auto limitOf = [&] {
    return ids == GroupIds::Devices      ? grid.devices()
           : ids == GroupIds::Partitions ? grid.partitions
                                         : grid.replicas;
  };
  // With one replica or one partition, exporters number devices in any mode.
  if (largest >= limitOf() && (grid.replicas == 1 || grid.partitions == 1))
    ids = GroupIds::Devices;
  if (largest >= limitOf()) {
    auto group = llvm::find_if(named, [&](ArrayRef<int64_t> each) {
      return llvm::is_contained(each, largest);
    });
    return op->emitOpError()
           << "names device " << largest << " in [" << *group
           << "], in a program for " << limitOf() << " devices, which begin at "
           << "0";
  }
  if (named.empty()) // all of them
    named.push_back(llvm::to_vector(llvm::seq<int64_t>(0, limitOf())));
  if (ids == GroupIds::Devices)
    return named;
  spmd::DeviceGroups result;
  for (ArrayRef<int64_t> group : named) {
    int64_t others =
        ids == GroupIds::Partitions ? grid.replicas : grid.partitions;
    for (int64_t other = 0; other < others; ++other) {
      if (other == 0 || ids != GroupIds::ReplicasOfAllPartitions)
        result.emplace_back();
      for (int64_t id : group)
        result.back().push_back(ids == GroupIds::Partitions
                                    ? other * grid.partitions + id
                                    : id * grid.partitions + other);
    }
  }
  return result;
}

/// Applies a region of scalar code to each element of tensors of one shape.
/// Fails with an error at an operation that is not elementwise.
static FailureOr<Value> applied(ImplicitLocOpBuilder &b, Region &region,
                                ValueRange tensors) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(tensors[0].getType()).getShape();
  Block &block = region.front();
  IRMapping map;
  map.map(block.getArguments(), tensors);
  // A scalar of a constant, or from above, is the same for each element.
  auto spread = [&](Value value) {
    if (map.contains(value) || shape.empty())
      return;
    auto type = cast<RankedTensorType>(value.getType()).clone(shape);
    map.map(value, stablehlo::BroadcastInDimOp::create(b, type, value,
                                                       ArrayRef<int64_t>{})
                       .getResult());
  };
  for (Operation &op : block.without_terminator()) {
    bool isElementwise = isa<stablehlo::SelectOp, stablehlo::ClampOp>(op) ||
                         (isa<stablehlo::StablehloDialect>(op.getDialect()) &&
                          op.hasTrait<OpTrait::SameOperandsAndResultShape>() &&
                          op.getNumRegions() == 0);
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
      Value scalar = b.clone(op)->getResult(0);
      spread(scalar);
      map.map(constant.getResult(), map.lookupOrDefault(scalar));
      continue;
    }
    if (!isElementwise)
      return ir::emitUnsupported(&op)
             << "stands in the region of '" << region.getParentOp()->getName()
             << "', which may have elementwise operations alone";
    for (Value operand : op.getOperands())
      spread(operand);
    Operation *copy = b.clone(op, map);
    for (Value result : copy->getResults())
      result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  }
  Value result = block.back().getOperand(0);
  spread(result);
  return map.lookupOrDefault(result);
}

using spmd::DeviceGroups;

namespace {

/// Lowers one operation.
class Collective {
public:
  Collective(Operation *op, DeviceCode &code, ProcessGrid grid)
      : op(op), code(code), grid(grid) {}

  LogicalResult lower(stablehlo::AllGatherOp gather);
  LogicalResult lower(stablehlo::AllReduceOp reduce);
  LogicalResult lower(stablehlo::AllToAllOp exchange);
  LogicalResult lower(stablehlo::CollectiveBroadcastOp broadcast);
  LogicalResult lower(stablehlo::CollectivePermuteOp permute);
  LogicalResult lower(stablehlo::ReduceScatterOp scatter);
  LogicalResult lower(stablehlo::PartitionIdOp id);
  LogicalResult lower(stablehlo::ReplicaIdOp id);

private:
  /// Groups of one size with each device in one of them.
  FailureOr<DeviceGroups> fullGroups(Attribute groups, GroupIds ids);
  FailureOr<Value> reduced(Value input, Region &region,
                           const DeviceGroups &groups);
  FailureOr<Value> folded(Value input, Region &region,
                          const DeviceGroups &groups);
  Value promoted(Value input, Type element);
  Value broadcastAmongSome(Value input, const DeviceGroups &groups);
  LogicalResult replace(ArrayRef<Value> results);
  void replaceByNumber(ArrayRef<int64_t> byDevice);
  /// The rank of each device in its group, or -1.
  SmallVector<int64_t> ranks(const DeviceGroups &groups) const;

  Operation *op;
  DeviceCode &code;
  ProcessGrid grid;
};

} // namespace

// ===----------------------------------------------------------------------===//
// Parts that all of them use
// ===----------------------------------------------------------------------===//

FailureOr<DeviceGroups> Collective::fullGroups(Attribute attribute,
                                               GroupIds ids) {
  FailureOr<DeviceGroups> groups = groupsOf(op, attribute, ids, grid);
  if (failed(groups))
    return failure();
  size_t members = 0;
  for (const auto &group : *groups) {
    members += group.size();
    if (group.size() != groups->front().size())
      return ir::emitUnsupported(op) << "has groups of several sizes, which "
                                        "this version does not take";
  }
  if (int64_t(members) != code.numDevices())
    return op->emitOpError() << "has " << members << " devices in its groups; "
                             << code.numDevices() << " run the program";
  return groups;
}

/// The results take the place of the operation's, where they have its types.
LogicalResult Collective::replace(ArrayRef<Value> results) {
  for (auto [result, old] : llvm::zip_equal(results, op->getResults()))
    if (result.getType() != old.getType())
      return op->emitOpError()
             << "gives " << result.getType()
             << " on the devices of its groups, not " << old.getType();
  op->replaceAllUsesWith(results);
  op->erase();
  return success();
}

SmallVector<int64_t> Collective::ranks(const DeviceGroups &groups) const {
  SmallVector<int64_t> result(code.numDevices(), -1);
  for (const auto &group : groups)
    for (auto [rank, device] : llvm::enumerate(group))
      result[device] = rank;
  return result;
}

Value Collective::promoted(Value input, Type element) {
  RankedTensorType type = tensorOf(input);
  if (type.getElementType() == element)
    return input;
  return stablehlo::ConvertOp::create(code.b, type.clone(element), input);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The reduction that a region of one operation is; nothing for another one.
static std::optional<ir::ReductionKind> kindOf(Region &region, Type element) {
  Block &block = region.front();
  if (!llvm::hasNItems(block, 2))
    return std::nullopt;
  Operation &inner = block.front();
  bool takesBoth = inner.getNumOperands() == 2 &&
                   inner.getOperand(0) != inner.getOperand(1) &&
                   llvm::all_of(inner.getOperands(), [&](Value operand) {
                     return llvm::is_contained(block.getArguments(), operand);
                   });
  if (!takesBoth || inner.getNumResults() != 1 ||
      block.back().getOperand(0) != inner.getResult(0))
    return std::nullopt;
  auto integer = dyn_cast<IntegerType>(element);
  using ir::ReductionKind;
  // A sum of booleans is "or", a product "and".
  if (integer && integer.getWidth() == 1) {
    if (isa<stablehlo::AddOp, stablehlo::OrOp, stablehlo::MaxOp>(inner))
      return ReductionKind::Sum;
    if (isa<stablehlo::MulOp, stablehlo::AndOp, stablehlo::MinOp>(inner))
      return ReductionKind::Prod;
    return std::nullopt;
  }
  bool isOrdered = !integer || !integer.isUnsigned();
  return llvm::TypeSwitch<Operation *, std::optional<ReductionKind>>(&inner)
      .Case([](stablehlo::AddOp) { return ReductionKind::Sum; })
      .Case([](stablehlo::MulOp) { return ReductionKind::Prod; })
      .Case([&](stablehlo::MaxOp) {
        return isOrdered ? std::optional(ReductionKind::Max) : std::nullopt;
      })
      .Case([&](stablehlo::MinOp) {
        return isOrdered ? std::optional(ReductionKind::Min) : std::nullopt;
      })
      .Default(std::nullopt);
}

FailureOr<Value> Collective::folded(Value input, Region &region,
                                    const DeviceGroups &groups) {
  Value stacked = code.stack(input, groups);
  Value sum = code.entry(stacked, 0);
  for (size_t rank = 1; rank < groups[0].size(); ++rank) {
    FailureOr<Value> next =
        applied(code.b, region, {sum, code.entry(stacked, rank)});
    if (failed(next))
      return failure();
    sum = *next;
  }
  return sum;
}

FailureOr<Value> Collective::reduced(Value input, Region &region,
                                     const DeviceGroups &groups) {
  if (groups[0].size() == 1)
    return input;
  Type element = tensorOf(input).getElementType();
  if (std::optional<ir::ReductionKind> kind = kindOf(region, element))
    return code.allReduce(input, *kind, groups);
  return folded(input, region, groups);
}

LogicalResult Collective::lower(stablehlo::AllReduceOp reduce) {
  FailureOr<DeviceGroups> groups =
      fullGroups(reduce.getReplicaGroups(),
                 groupIdsOf(reduce.getChannelHandleAttr(),
                            reduce.getUseGlobalDeviceIds(), false));
  if (failed(groups))
    return failure();
  SmallVector<Value> results;
  for (auto [operand, result] :
       llvm::zip(reduce.getOperands(), reduce.getResults())) {
    FailureOr<Value> value =
        reduced(promoted(operand, tensorOf(result).getElementType()),
                reduce.getComputation(), *groups);
    if (failed(value))
      return failure();
    results.push_back(*value);
  }
  return replace(results);
}

LogicalResult Collective::lower(stablehlo::ReduceScatterOp scatter) {
  FailureOr<DeviceGroups> groups =
      fullGroups(scatter.getReplicaGroups(),
                 groupIdsOf(scatter.getChannelHandleAttr(),
                            scatter.getUseGlobalDeviceIds(), false));
  if (failed(groups))
    return failure();
  auto type = cast<RankedTensorType>(scatter.getType());
  int64_t dim = scatter.getScatterDimension();
  Value input = promoted(scatter.getOperand(), type.getElementType());
  if (tensorOf(input).getDimSize(dim) !=
      type.getDimSize(dim) * int64_t(groups->front().size()))
    return op->emitOpError()
           << "must cut dimension " << dim << " into " << groups->front().size()
           << " parts, one for each member of a group";
  std::optional<ir::ReductionKind> kind =
      kindOf(scatter.getComputation(), type.getElementType());
  if (kind && groups->front().size() > 1)
    return replace(code.reduceScatter(input, *kind, dim, *groups));
  FailureOr<Value> whole = reduced(input, scatter.getComputation(), *groups);
  if (failed(whole))
    return failure();
  SmallVector<Value> starts(type.getRank());
  for (Value &start : starts)
    start = code.constant(0);
  starts[dim] =
      code.chosen(llvm::map_to_vector(ranks(*groups), [&](int64_t rank) {
        return rank * type.getDimSize(dim);
      }));
  return replace(code.part(*whole, starts, type.getShape()));
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

LogicalResult Collective::lower(stablehlo::AllGatherOp gather) {
  FailureOr<DeviceGroups> groups =
      fullGroups(gather.getReplicaGroups(),
                 groupIdsOf(gather.getChannelHandleAttr(),
                            gather.getUseGlobalDeviceIds(), false));
  if (failed(groups))
    return failure();
  return replace(llvm::map_to_vector(gather.getOperands(), [&](Value operand) {
    return code.allGather(operand, gather.getAllGatherDim(), *groups);
  }));
}

LogicalResult Collective::lower(stablehlo::AllToAllOp exchange) {
  FailureOr<DeviceGroups> groups =
      fullGroups(exchange.getReplicaGroups(),
                 groupIdsOf(exchange.getChannelHandleAttr(), false, true));
  if (failed(groups))
    return failure();
  if (groups->front().size() != exchange.getSplitCount())
    return op->emitOpError()
           << "must have groups of " << exchange.getSplitCount() << " devices";
  return replace(
      llvm::map_to_vector(exchange.getOperands(), [&](Value operand) {
        return code.allToAll(operand, exchange.getSplitDimension(),
                             exchange.getConcatDimension(), *groups);
      }));
}

/// Each device gets all, and takes the tensor of the first member of its group;
/// a device in no group has zeros.
Value Collective::broadcastAmongSome(Value input, const DeviceGroups &groups) {
  int64_t devices = code.numDevices();
  SmallVector<int64_t> roots(devices, 0), isMember(devices, 0);
  for (const auto &group : groups)
    for (int64_t device : group) {
      roots[device] = group[0];
      isMember[device] = 1;
    }
  Value all =
      code.stack(input, {llvm::to_vector(llvm::seq<int64_t>(0, devices))});
  Value picked = code.entryAt(all, code.chosen(roots));
  auto flag = RankedTensorType::get({}, code.b.getI1Type());
  Value member = stablehlo::CompareOp::create(
      code.b, flag, code.chosen(isMember), code.constant(0),
      stablehlo::ComparisonDirection::NE, nullptr);
  return stablehlo::SelectOp::create(code.b, input.getType(), member, picked,
                                     code.zeros(tensorOf(input)));
}

LogicalResult Collective::lower(stablehlo::CollectiveBroadcastOp broadcast) {
  FailureOr<DeviceGroups> groups =
      groupsOf(op, broadcast.getReplicaGroups(),
               groupIdsOf(broadcast.getChannelHandleAttr(), false, true), grid);
  if (failed(groups))
    return failure();
  SmallVector<Value> results;
  if (broadcast.getHasDynamicRoot()) {
    groups =
        fullGroups(broadcast.getReplicaGroups(),
                   groupIdsOf(broadcast.getChannelHandleAttr(), false, true));
    if (failed(groups))
      return failure();
    Value roots = broadcast.getOperands().back();
    for (auto [index, operand] :
         llvm::enumerate(broadcast.getOperands().drop_back())) {
      Value root = promoted(code.entry(roots, index), code.b.getI64Type());
      results.push_back(code.entryAt(code.stack(operand, *groups), root));
    }
    return replace(results);
  }
  size_t members = 0;
  bool isEven = true;
  for (const auto &group : *groups) {
    members += group.size();
    isEven &= group.size() == groups->front().size();
  }
  isEven &= int64_t(members) == code.numDevices();
  for (Value operand : broadcast.getOperands())
    results.push_back(isEven ? code.broadcast(operand, *groups)
                             : broadcastAmongSome(operand, *groups));
  return replace(results);
}

LogicalResult Collective::lower(stablehlo::CollectivePermuteOp permute) {
  FailureOr<DeviceGroups> pairs =
      groupsOf(op, permute.getSourceTargetPairs(),
               groupIdsOf(permute.getChannelHandleAttr(), false, true), grid);
  if (failed(pairs))
    return failure();
  return replace(llvm::map_to_vector(permute.getOperands(), [&](Value operand) {
    return code.permute(operand, *pairs);
  }));
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

void Collective::replaceByNumber(ArrayRef<int64_t> byDevice) {
  Value number = code.chosen(byDevice);
  op->replaceAllUsesWith(
      stablehlo::ConvertOp::create(code.b, op->getResult(0).getType(), number));
  op->erase();
}

LogicalResult Collective::lower(stablehlo::PartitionIdOp) {
  replaceByNumber(llvm::map_to_vector(
      llvm::seq<int64_t>(0, code.numDevices()),
      [&](int64_t device) { return device % grid.partitions; }));
  return success();
}

LogicalResult Collective::lower(stablehlo::ReplicaIdOp) {
  replaceByNumber(llvm::map_to_vector(
      llvm::seq<int64_t>(0, code.numDevices()),
      [&](int64_t device) { return device / grid.partitions; }));
  return success();
}

bool isCollective(Operation *op) {
  return isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
             stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
             stablehlo::CollectivePermuteOp, stablehlo::PartitionIdOp,
             stablehlo::ReduceScatterOp, stablehlo::ReplicaIdOp>(op);
}

LogicalResult lowerCollective(Operation *op, DeviceCode &code,
                              ProcessGrid grid) {
  for (Type type : op->getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
      return ir::emitUnsupported(op)
             << "has a value of type " << type
             << "; devices exchange integers and floats of static shape";
  }
  code.b.setInsertionPoint(op);
  code.b.setLoc(op->getLoc());
  // There is nothing to exchange, nor are there views of no elements.
  auto isEmpty = [](Type type) {
    return cast<RankedTensorType>(type).getNumElements() == 0;
  };
  if (op->getNumResults() > 0 && llvm::all_of(op->getResultTypes(), isEmpty)) {
    for (Value result : op->getResults())
      result.replaceAllUsesWith(stablehlo::ConstantOp::create(
          code.b,
          DenseElementsAttr::get(cast<RankedTensorType>(result.getType()),
                                 ArrayRef<Attribute>())));
    op->erase();
    return success();
  }
  Collective collective(op, code, grid);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
            stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
            stablehlo::CollectivePermuteOp, stablehlo::PartitionIdOp,
            stablehlo::ReduceScatterOp, stablehlo::ReplicaIdOp>(
          [&](auto each) { return collective.lower(each); });
}

} // namespace mgpu::conversion
