// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of meshes, shardings and computations.
#include "dialect/sdy/SdyDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mgpu::sdy;

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

/// More devices than this are a mistake.
static constexpr int64_t maxDevices = 1 << 20;

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MeshAxisAttr> axes,
                               ArrayRef<int64_t> deviceIds) {
  llvm::SmallDenseSet<StringAttr> names;
  int64_t count = 1;
  for (MeshAxisAttr axis : axes) {
    if (!names.insert(axis.getName()).second)
      return emitError() << "a mesh has one axis " << axis.getName()
                         << ", not two";
    if (axis.getSize() < 1 || axis.getSize() > maxDevices ||
        (count *= axis.getSize()) > maxDevices)
      return emitError() << "a mesh has 1 to " << maxDevices << " devices";
  }
  if (deviceIds.empty())
    return success();
  if (int64_t(deviceIds.size()) != count)
    return emitError() << "device_ids has " << deviceIds.size()
                       << " devices, and the mesh has " << count;
  if (axes.empty())
    return success(deviceIds[0] >= 0);
  SmallVector<int64_t> sorted(deviceIds);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, count)))
    return emitError() << "device_ids must have each device from 0 to "
                       << count - 1 << " once";
  if (llvm::is_sorted(deviceIds))
    return emitError() << "device_ids is left out where it is in order";
  return success();
}

int64_t MeshAttr::numDevices() const {
  int64_t count = 1;
  for (MeshAxisAttr axis : getAxes())
    count *= axis.getSize();
  return count;
}

int64_t MeshAttr::axisIndex(StringRef name) const {
  for (auto [index, axis] : llvm::enumerate(getAxes()))
    if (axis.getName() == name)
      return index;
  return -1;
}

int64_t MeshAttr::axisSize(StringRef name) const {
  int64_t index = axisIndex(name);
  return index < 0 ? 0 : getAxes()[index].getSize();
}

MeshAttr mgpu::sdy::meshOf(Operation *op, Attribute meshOrName) {
  if (auto mesh = dyn_cast<MeshAttr>(meshOrName))
    return mesh;
  auto name = dyn_cast<FlatSymbolRefAttr>(meshOrName);
  Operation *table = op;
  while (table && !isa<ModuleOp>(table))
    table = table->getParentOp();
  auto mesh = table && name ? SymbolTable::lookupSymbolIn(table, name.getAttr())
                            : nullptr;
  auto found = dyn_cast_or_null<MeshOp>(mesh);
  return found ? found.getMesh() : MeshAttr();
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

/// The fault of an axis of the mesh, or of a part of one; empty where there is
/// none.
static std::string faultOfAxis(AxisRefAttr axis, MeshAttr mesh) {
  std::string fault;
  llvm::raw_string_ostream out(fault);
  int64_t size = mesh.axisSize(axis.getName());
  if (!size)
    out << "the mesh has no axis " << axis.getName();
  else if (axis.isSubAxis() &&
           (axis.getPreSize() > size || axis.getSize() > size ||
            size % (axis.getPreSize() * axis.getSize()) != 0))
    out << "axis " << axis.getName() << " of size " << size << " has no part ("
        << axis.getPreSize() << ')' << axis.getSize();
  return fault;
}

std::string mgpu::sdy::faultOf(TensorShardingAttr sharding, Type type,
                               MeshAttr mesh) {
  std::string fault;
  llvm::raw_string_ostream out(fault);
  auto shaped = dyn_cast<ShapedType>(type);
  size_t rank = shaped && shaped.hasRank() ? shaped.getRank() : 0;
  if (sharding.getDims().size() != rank &&
      !(mesh.getAxes().empty() && sharding.getDims().empty())) {
    out << "the sharding has " << sharding.getDims().size()
        << " dimensions, and '" << type << "' has " << rank;
    return fault;
  }
  SmallVector<AxisRefAttr> axes(sharding.getReplicated());
  llvm::append_range(axes, sharding.getUnreduced());
  for (DimensionShardingAttr dim : sharding.getDims())
    llvm::append_range(axes, dim.getAxes());
  // Parts of an axis overlap where one begins before another ends.
  llvm::SmallDenseMap<StringAttr, SmallVector<std::pair<int64_t, int64_t>>>
      seen;
  for (AxisRefAttr axis : axes) {
    fault = faultOfAxis(axis, mesh);
    if (!fault.empty())
      return fault;
    int64_t begin = axis.isSubAxis() ? axis.getPreSize() : 1;
    int64_t end = begin * axis.sizeIn(mesh);
    for (auto [otherBegin, otherEnd] : seen[axis.getName()])
      if (begin < otherEnd && otherBegin < end) {
        out << "axis " << axis.getName() << " is used twice";
        return fault;
      }
    seen[axis.getName()].emplace_back(begin, end);
  }
  return fault;
}

/// Whether the sharding's axes are of its mesh, once each, and it has a
/// dimension for each of the tensor's.
static LogicalResult checkSharding(Operation *op, Type type,
                                   TensorShardingAttr sharding) {
  MeshAttr mesh = meshOf(op, sharding.getMesh());
  if (!mesh)
    return op->emitError() << "there is no mesh " << sharding.getMesh();
  std::string fault = faultOf(sharding, type, mesh);
  if (!fault.empty())
    return op->emitError() << fault;
  return success();
}

/// An attribute of a function's argument or result, whose types are `types`.
static LogicalResult
checkAttribute(Operation *op, unsigned index, NamedAttribute attribute,
               function_ref<TypeRange(FunctionOpInterface)> types) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto sharding = dyn_cast<TensorShardingAttr>(attribute.getValue());
  if (!function || attribute.getName() != shardingName)
    return success();
  if (!sharding)
    return op->emitError() << shardingName << " must be a #sdy.sharding";
  return checkSharding(op, types(function)[index], sharding);
}

LogicalResult SdyDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned index,
                                                   NamedAttribute attribute) {
  return checkAttribute(op, index, attribute, [](FunctionOpInterface each) {
    return TypeRange(each.getArgumentTypes());
  });
}

LogicalResult
SdyDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                        NamedAttribute attribute) {
  return checkAttribute(op, index, attribute, [](FunctionOpInterface each) {
    return TypeRange(each.getResultTypes());
  });
}

LogicalResult SdyDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != shardingName)
    return success();
  auto shardings = dyn_cast<TensorShardingPerValueAttr>(attribute.getValue());
  if (!shardings)
    return op->emitError() << shardingName
                           << " must be a #sdy.sharding_per_value";
  if (shardings.getShardings().size() != op->getNumResults())
    return op->emitError() << "must have a sharding for each of "
                           << op->getNumResults() << " results, not "
                           << shardings.getShardings().size();
  for (auto [type, sharding] :
       llvm::zip(op->getResultTypes(), shardings.getShardings()))
    if (failed(checkSharding(op, type, sharding)))
      return failure();
  return success();
}

#define MGPU_CHECK_SHARDING(OP, SHARDING)                                      \
  LogicalResult OP::verify() {                                                 \
    return checkSharding(*this, getType(), SHARDING);                          \
  }
MGPU_CHECK_SHARDING(AllGatherOp, getOutSharding())
MGPU_CHECK_SHARDING(AllReduceOp, getOutSharding())
MGPU_CHECK_SHARDING(AllSliceOp, getOutSharding())
MGPU_CHECK_SHARDING(AllToAllOp, getOutSharding())
MGPU_CHECK_SHARDING(CollectivePermuteOp, getOutSharding())
MGPU_CHECK_SHARDING(ReduceScatterOp, getOutSharding())
MGPU_CHECK_SHARDING(ReplicatedToUnreducedOp, getOutSharding())
MGPU_CHECK_SHARDING(ReshardOp, getSharding())
MGPU_CHECK_SHARDING(ShardedToUnreducedOp, getOutSharding())
MGPU_CHECK_SHARDING(ShardingConstraintOp, getSharding())
#undef MGPU_CHECK_SHARDING

/// An edge may have no sharding.
template <typename OpTy>
static LogicalResult checkEdge(OpTy op) {
  std::optional<TensorShardingAttr> sharding = op.getSharding();
  return sharding ? checkSharding(op, op.getType(), *sharding) : success();
}
LogicalResult DataFlowEdgeOp::verify() { return checkEdge(*this); }
LogicalResult FuncDataFlowEdgeOp::verify() { return checkEdge(*this); }

//===----------------------------------------------------------------------===//
// Computations
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>>
mgpu::sdy::shardShape(ArrayRef<int64_t> shape, TensorShardingAttr sharding,
                      MeshAttr mesh, ArrayRef<StringAttr> axes) {
  SmallVector<int64_t> result(shape);
  if (sharding.getDims().size() != shape.size())
    return std::nullopt;
  for (auto [size, dim] : llvm::zip(result, sharding.getDims()))
    for (AxisRefAttr axis : dim.getAxes()) {
      if (!llvm::is_contained(axes, axis.getName()) ||
          ShapedType::isDynamic(size))
        continue;
      int64_t parts = axis.sizeIn(mesh);
      if (parts < 1 || size % parts != 0)
        return std::nullopt;
      size /= parts;
    }
  return result;
}

/// Whether `locals` are shards of `globals` along the manual axes.
static LogicalResult checkShards(ManualComputationOp op, StringRef what,
                                 TensorShardingPerValueAttr shardings,
                                 TypeRange globals, TypeRange locals) {
  if (shardings.getShardings().size() != globals.size() ||
      locals.size() != globals.size())
    return op.emitOpError() << "must have a sharding and a value of the body "
                               "for each "
                            << what;
  for (auto [sharding, global, local] :
       llvm::zip(shardings.getShardings(), globals, locals)) {
    if (failed(checkSharding(op, global, sharding)))
      return failure();
    MeshAttr mesh = meshOf(op, sharding.getMesh());
    auto type = cast<RankedTensorType>(global);
    for (StringAttr axis : op.getManualAxes().getAxes())
      if (!mesh.axisSize(axis))
        return op.emitOpError() << "names a manual axis " << axis
                                << " that the mesh does not have";
    std::optional<SmallVector<int64_t>> shape = shardShape(
        type.getShape(), sharding, mesh, op.getManualAxes().getAxes());
    if (!shape)
      return op.emitOpError() << "cannot cut " << type << " as " << sharding;
    if (auto expected = type.clone(*shape); local != Type(expected))
      return op.emitOpError()
             << "must have a body with " << expected << " for the " << what
             << ' ' << type << ", not " << local;
  }
  return success();
}

LogicalResult ManualComputationOp::verify() {
  Block &block = getBody().front();
  auto end = block.empty() ? nullptr : dyn_cast<ReturnOp>(block.back());
  if (!end)
    return emitOpError() << "must have a body that ends with sdy.return";
  if (failed(checkShards(*this, "operand", getInShardings(), getOperandTypes(),
                         block.getArgumentTypes())))
    return failure();
  return checkShards(*this, "result", getOutShardings(), getResultTypes(),
                     end.getOperandTypes());
}

LogicalResult NamedComputationOp::verify() {
  Block &block = getBody().front();
  auto end = block.empty() ? nullptr : dyn_cast<ReturnOp>(block.back());
  if (end && llvm::equal(block.getArgumentTypes(), getOperandTypes()) &&
      llvm::equal(end.getOperandTypes(), getResultTypes()))
    return success();
  return emitOpError() << "must have a body of the types it takes and gives";
}
