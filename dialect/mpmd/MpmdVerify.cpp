// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of programs over several meshes.
#include "dialect/mpmd/MpmdDialect.h"

using namespace mlir;
using namespace mgpu::mpmd;
namespace sdy = mgpu::sdy;

//===----------------------------------------------------------------------===//
// Meshes and tensors on them
//===----------------------------------------------------------------------===//

LogicalResult TopologyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<NamedMeshAttr> meshes) {
  llvm::SmallDenseSet<StringRef> names;
  for (NamedMeshAttr mesh : meshes)
    if (mesh.getName().empty() || !names.insert(mesh.getName()).second)
      return emitError() << "a topology has one mesh \"" << mesh.getName()
                         << "\", and its name is not empty [topology_c1]";
  return success();
}

LogicalResult MpmdDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  bool isSet = name == "mpmd.use_set" || name == "mpmd.src_set";
  if (isSet && !isa<MeshesWithOriginsAttr>(attribute.getValue()))
    return op->emitError()
           << name
           << " must be a #mpmd.meshes_with_origins [meshes_with_origins_c1]";
  return success();
}

/// The first dimension that the sharding cuts into parts of different sizes;
/// -1 where it cuts none so.
static int64_t unevenDimension(ShapedType type,
                               sdy::TensorShardingAttr sharding,
                               sdy::MeshAttr mesh) {
  for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
    int64_t parts = 1;
    for (sdy::AxisRefAttr axis : dim.getAxes())
      parts *= axis.sizeIn(mesh);
    if (!type.isDynamicDim(index) && type.getDimSize(index) % parts != 0)
      return index;
  }
  return -1;
}

static LogicalResult checkMeshTensor(Operation *op, MeshTensorType type) {
  sdy::MeshAttr mesh = meshAt(op, type.getMeshName());
  if (!mesh)
    return op->emitOpError()
           << "has a tensor on mesh \"" << type.getMeshName()
           << "\", which is not in the function's topology [mesh_tensor_c1]";
  sdy::TensorShardingAttr sharding = type.getSharding();
  if (!sharding)
    return success();
  std::string fault = sdy::faultOf(sharding, type, mesh);
  if (!fault.empty())
    return op->emitOpError() << "has a tensor on mesh \"" << type.getMeshName()
                             << "\": " << fault << " [mesh_tensor_c2]";
  if (int64_t dim = unevenDimension(type, sharding, mesh); dim >= 0)
    return op->emitOpError() << "cannot cut dimension " << dim << " of " << type
                             << " into parts of the same size [mesh_tensor_c3]";
  return success();
}

/// Whether the operands and results on meshes suit the topology.
static LogicalResult checkMeshTensors(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (auto tensor = dyn_cast<MeshTensorType>(type);
          tensor && failed(checkMeshTensor(op, tensor)))
        return failure();
  return success();
}

/// The global type of a tensor on a mesh, and a token's own.
static Type globalOf(Type type) {
  auto tensor = dyn_cast<MeshTensorType>(type);
  return tensor ? Type(tensor.getRankedTensorType()) : type;
}

static bool areGlobal(TypeRange types, TypeRange globals) {
  return types.size() == globals.size() &&
         llvm::all_of(llvm::zip(types, globals), [](auto pair) {
           return globalOf(std::get<0>(pair)) == std::get<1>(pair);
         });
}

/// The first of the types that is on another mesh; null where there is none.
static MeshTensorType onOther(TypeRange types, StringRef mesh) {
  for (Type type : types)
    if (auto tensor = dyn_cast<MeshTensorType>(type);
        tensor && tensor.getMeshName() != mesh)
      return tensor;
  return {};
}

//===----------------------------------------------------------------------===//
// Between plain tensors and tensors on a mesh
//===----------------------------------------------------------------------===//

static bool isPlainOn(MeshTensorType type, Type plain) {
  return type.getRankedTensorType() == plain && type.isFullyReplicated();
}

LogicalResult AssignOp::verify() {
  if (failed(checkMeshTensors(*this)))
    return failure();
  if (!isPlainOn(getType(), getTensor().getType()))
    return emitOpError() << "must give " << getTensor().getType()
                         << " on a mesh, all of it on each device, not "
                         << getType() << " [assign_c1]";
  return success();
}

LogicalResult UnassignOp::verify() {
  if (failed(checkMeshTensors(*this)))
    return failure();
  if (!isPlainOn(getTensor().getType(), getType()))
    return emitOpError() << "must take " << getType()
                         << " on a mesh, all of it on each device, not "
                         << getTensor().getType() << " [unassign_c1]";
  return success();
}

LogicalResult TransferOp::verify() {
  MeshTensorType from = getTensor().getType(), to = getType();
  if (failed(checkMeshTensors(*this)))
    return failure();
  if (from.getRankedTensorType() != to.getRankedTensorType())
    return emitOpError() << "must give " << from.getRankedTensorType()
                         << ", which it takes, not " << to.getRankedTensorType()
                         << " [transfer_c1]";
  for (MeshTensorType type : {from, to})
    if (StringAttr kind = type.getMemoryKind();
        kind && kind != deviceMemory && kind != hostMemory)
      return emitOpError() << "knows memory_kind \"" << deviceMemory
                           << "\" and \"" << hostMemory << "\", not " << kind
                           << " [transfer_c2]";
  if ((*this)->hasAttr("memory_kind"))
    return emitOpError() << "must say memory_kind in its types, and not as an "
                            "attribute [transfer_c3]";
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getReduction().getReductionType() == ReductionType::kNone &&
      getTensors().size() != 1)
    return emitOpError() << "with none must have one operand, not "
                         << getTensors().size() << " [reduce_c1]";
  return success();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// The types that a body returns.
static TypeRange returned(Region &region) {
  return region.front().getTerminator()->getOperandTypes();
}

LogicalResult NamedComputationOp::verifyRegions() {
  if (TypeRange(getRegion().getArgumentTypes()) != TypeRange(getOperandTypes()))
    return emitOpError() << "must have a body that takes values of the "
                            "operands' types [named_computation_c1]";
  if (returned(getRegion()) != TypeRange(getResultTypes()))
    return emitOpError() << "must have a body that returns values of the "
                            "results' types [named_computation_c2]";
  return success();
}

/// Whether the list, where there is one, has a sharding for each value, and
/// that fits.
static LogicalResult
checkShardings(FragmentOp op, StringRef name,
               std::optional<sdy::TensorShardingPerValueAttr> shardings,
               TypeRange types) {
  if (!shardings)
    return success();
  ArrayRef<sdy::TensorShardingAttr> list = shardings->getShardings();
  if (list.size() != types.size())
    return op.emitOpError() << "must have " << types.size() << ' ' << name
                            << ", not " << list.size() << " [fragment_c5]";
  sdy::MeshAttr mesh = meshAt(op, op.getMeshName());
  for (auto [sharding, type] : llvm::zip(list, types)) {
    auto tensor = dyn_cast<MeshTensorType>(type);
    std::string fault = sdy::faultOf(sharding, type, mesh);
    if (fault.empty() && tensor && unevenDimension(tensor, sharding, mesh) >= 0)
      fault = "a dimension has no parts of the same size";
    if (!fault.empty())
      return op.emitOpError() << "has " << name << " that do not suit " << type
                              << ": " << fault << " [fragment_c6]";
  }
  return success();
}

LogicalResult FragmentOp::verifyRegions() {
  if (!meshAt(*this, getMeshName()))
    return emitOpError() << "is on mesh \"" << getMeshName()
                         << "\", which is not in the function's topology "
                            "[fragment_c1]";
  for (TypeRange types :
       {TypeRange(getOperandTypes()), TypeRange(getResultTypes())})
    if (MeshTensorType other = onOther(types, getMeshName()))
      return emitOpError() << "is on mesh \"" << getMeshName() << "\", and "
                           << other << " is not [fragment_c2]";
  if (failed(checkMeshTensors(*this)))
    return failure();
  if (!areGlobal(getOperandTypes(), getRegion().getArgumentTypes()))
    return emitOpError() << "must have a body that takes values of the "
                            "operands' global types [fragment_c3]";
  if (!areGlobal(getResultTypes(), returned(getRegion())))
    return emitOpError() << "must have a body that returns values of the "
                            "results' global types [fragment_c4]";
  if (getStageId() && getOrigin().empty())
    return emitOpError() << "has a stage, so it must have an origin "
                            "[fragment_c7]";
  return success(
      succeeded(checkShardings(*this, "in_shardings", getInShardings(),
                               getOperandTypes())) &&
      succeeded(checkShardings(*this, "out_shardings", getOutShardings(),
                               getResultTypes())));
}

/// Whether the body takes the loop's values and an index.
static bool takesIndex(ForOp op) {
  TypeRange types(op.getRegion().getArgumentTypes());
  if (types.size() != op.getNumOperands() + 1 ||
      types.drop_back() != TypeRange(op.getOperandTypes()))
    return false;
  auto index = dyn_cast<ShapedType>(types.back());
  return index && index.hasRank() && index.getRank() == 0 &&
         index.getElementType().isInteger(32);
}

LogicalResult ForOp::verifyRegions() {
  if (TypeRange(getOperandTypes()) != TypeRange(getResultTypes()))
    return emitOpError() << "must give values of the operands' types [for_c1]";
  if (!takesIndex(*this))
    return emitOpError() << "must have a body that takes values of the "
                            "operands' types, and a 32-bit index [for_c2]";
  if (returned(getRegion()) != TypeRange(getOperandTypes()))
    return emitOpError() << "must have a body that returns values of the "
                            "operands' types [for_c3]";
  uint32_t factor = getUnrollFactor().value_or(1);
  if (getIterations() == 0 || factor == 0 || getIterations() % factor != 0)
    return emitOpError() << "runs 1 time at least, in rounds of "
                            "unroll_factor, not "
                         << getIterations() << " in rounds of " << factor
                         << " [for_c4]";
  for (Type type : getOperandTypes())
    if (type.getTypeID() != getOperandTypes().front().getTypeID())
      return emitOpError() << "must have operands of one kind, not "
                           << getOperandTypes().front() << " and " << type
                           << " [for_c5]";
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult FragmentCallOp::verify() {
  if (!meshAt(*this, getMeshName()))
    return emitOpError() << "is on mesh \"" << getMeshName()
                         << "\", which is not in the function's topology "
                            "[fragment_call_c3]";
  for (TypeRange types :
       {TypeRange(getOperandTypes()), TypeRange(getResultTypes())})
    if (MeshTensorType other = onOther(types, getMeshName()))
      return emitOpError() << "is on mesh \"" << getMeshName() << "\", and "
                           << other << " is not [fragment_call_c4]";
  return checkMeshTensors(*this);
}

LogicalResult FragmentCallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee =
      tables.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr()
                         << ", which is no function [fragment_call_c1]";
  if (!areGlobal(getOperandTypes(), callee.getArgumentTypes()) ||
      !areGlobal(getResultTypes(), callee.getResultTypes()))
    return emitOpError() << "must call a function of the global types of its "
                            "operands and results, not "
                         << callee.getFunctionType() << " [fragment_call_c2]";
  auto shape = callee->getAttrOfType<sdy::MeshAttr>(meshShapeName);
  if (shape != meshAt(*this, getMeshName()))
    return emitOpError() << "is on mesh \"" << getMeshName() << "\", and "
                         << getCalleeAttr()
                         << " does not have that mesh as mesh_shape "
                            "[fragment_call_c5]";
  return success();
}

LogicalResult CallOp::verify() {
  if (Attribute counter = (*this)->getAttr(callCounterName)) {
    auto number = dyn_cast<IntegerAttr>(counter);
    if (!number || !number.getType().isUnsignedInteger(32))
      return emitOpError() << "must have a call_counter of type ui32, not "
                           << counter << " [call_c3]";
  }
  Operation *parent = (*this)->getParentOp();
  if (!isa<func::FuncOp, ForOp>(parent))
    return emitOpError() << "must stand in a function or in mpmd.for, not in "
                         << parent->getName() << " [call_c4]";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee =
      tables.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr()
                         << ", which is no function [call_c1]";
  if (callee.getArgumentTypes() != getOperandTypes() ||
      callee.getResultTypes() != getResultTypes())
    return emitOpError() << "must call a function of the types of its operands "
                            "and results, not "
                         << callee.getFunctionType() << " [call_c2]";
  auto caller = (*this)->getParentOfType<func::FuncOp>();
  if (caller && topologyOf(caller) && !caller.isPublic())
    return emitOpError() << "stands in @" << caller.getName()
                         << ", but only the entry function of a program with "
                            "a topology calls [call_c5]";
  if (topologyOf(callee) && !callee.isPrivate())
    return emitOpError() << "must call a private function, as "
                         << getCalleeAttr() << " has a topology [call_c6]";
  return success();
}
