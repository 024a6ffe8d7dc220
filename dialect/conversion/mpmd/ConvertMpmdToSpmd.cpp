// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTMPMDTOSPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// The devices of a mesh in the program.
struct MeshDevices {
  sdy::MeshAttr mesh;
  SmallVector<int64_t> sizes; ///< by axis
  int64_t first = 0;
};

class MpmdToSpmd {
public:
  MpmdToSpmd(ModuleOp module, func::FuncOp function)
      : symbols(module), function(function), b(function.getContext()) {}
  LogicalResult run();

private:
  LogicalResult numberDevices(mpmd::TopologyAttr topology);
  FailureOr<spmd::LayoutAttr> layoutOf(Operation *op, Type type);
  LogicalResult convertSignature();
  LogicalResult convert(Operation *op);
  LogicalResult convertFragment(mpmd::FragmentOp op);
  LogicalResult convertTransfer(mpmd::TransferOp op);
  LogicalResult convertReturn(Operation *end);
  FailureOr<func::FuncOp> outline(mpmd::FragmentOp op);
  sdy::TensorShardingAttr shardingOf(mpmd::MeshTensorType type);

  SymbolTable symbols;
  func::FuncOp function;
  OpBuilder b;
  llvm::StringMap<MeshDevices> meshes;
  IRMapping map; ///< to a device's part
  unsigned numFragments = 0;
};

LogicalResult MpmdToSpmd::numberDevices(mpmd::TopologyAttr topology) {
  int64_t next = 0;
  for (mpmd::NamedMeshAttr each : topology.getMeshes()) {
    MeshDevices devices{each.getMesh(), {}, next};
    for (auto [k, id] : llvm::enumerate(each.getMesh().getDeviceIds()))
      if (id != int64_t(k))
        return ir::emitUnsupported(function)
               << "has mesh '" << each.getName()
               << "', which lists its devices; they must be in order";
    for (sdy::MeshAxisAttr axis : each.getMesh().getAxes())
      devices.sizes.push_back(axis.getSize());
    if (devices.sizes.empty())
      devices.sizes.push_back(1);
    next += each.getMesh().numDevices();
    if (next > spmd::mostDevices)
      return ir::emitUnsupported(function)
             << "has more than " << spmd::mostDevices << " devices";
    meshes[each.getName()] = std::move(devices);
  }
  return success();
}

FailureOr<spmd::LayoutAttr> MpmdToSpmd::layoutOf(Operation *op, Type type) {
  auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
  if (!tensor)
    return ir::emitUnsupported(op)
           << "has a value of type " << type << "; only tensors on meshes run";
  if (tensor.isOnHost())
    return ir::emitUnsupported(op) << "has a tensor in the hosts' memory "
                                      "(memory_kind = \"pinned_host\")"
                                      "; this version keeps all on the devices";
  const MeshDevices &devices = meshes[tensor.getMeshName()];
  SmallVector<Axes> split(tensor.getGlobalTensorType().getRank());
  if (tensor.getSharding())
    for (auto [dim, each] : llvm::enumerate(tensor.getSharding().getDims()))
      for (sdy::AxisRefAttr axis : each.getAxes()) {
        if (axis.isSubAxis())
          return ir::emitUnsupported(op)
                 << "has a sharding with a part of axis '"
                 << axis.getName().getValue() << "'";
        split[dim].push_back(devices.mesh.axisIndex(axis.getName()));
      }
  spmd::LayoutAttr local = layoutOfCuts(b.getContext(), devices.sizes, split);
  return spmd::LayoutAttr::get(b.getContext(), local.getMesh(),
                               local.getSplit(), devices.first);
}

/// Arguments become whole tensors, of which devices take their parts. The ones
/// on meshes stay, for their types, until the body is converted.
LogicalResult MpmdToSpmd::convertSignature() {
  Block &block = function.front();
  b.setInsertionPointToStart(&block);
  SmallVector<Type> inputs, results;
  for (BlockArgument argument : llvm::to_vector(block.getArguments())) {
    FailureOr<spmd::LayoutAttr> layout = layoutOf(function, argument.getType());
    if (failed(layout))
      return failure();
    auto whole =
        cast<mpmd::MeshTensorType>(argument.getType()).getGlobalTensorType();
    Type part = whole.clone(layout->shardShape(whole.getShape()));
    auto cut = spmd::FullToShardOp::create(
        b, argument.getLoc(), part,
        block.addArgument(whole, argument.getLoc()));
    map.map(argument, cut.getShard());
    inputs.push_back(whole);
    function.setArgAttr(argument.getArgNumber(), spmd::layoutName, *layout);
    function.removeArgAttr(argument.getArgNumber(), sdy::shardingName);
  }
  for (auto [k, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<spmd::LayoutAttr> layout = layoutOf(function, type);
    if (failed(layout))
      return failure();
    results.push_back(cast<mpmd::MeshTensorType>(type).getGlobalTensorType());
    function.setResultAttr(k, spmd::layoutName, *layout);
    function.removeResultAttr(k, b.getStringAttr(sdy::shardingName));
  }
  function.setFunctionType(b.getFunctionType(inputs, results));
  return success();
}

/// The sharding of a fragment's value, closed, so that it stays.
sdy::TensorShardingAttr MpmdToSpmd::shardingOf(mpmd::MeshTensorType type) {
  SmallVector<sdy::DimensionShardingAttr> dims;
  for (int64_t dim = 0; dim < type.getGlobalTensorType().getRank(); ++dim)
    dims.push_back(sdy::DimensionShardingAttr::get(
        b.getContext(),
        type.getSharding() ? type.getSharding().getDims()[dim].getAxes()
                           : ArrayRef<sdy::AxisRefAttr>(),
        /*isClosed=*/true, -1));
  return sdy::TensorShardingAttr::get(
      b.getContext(), meshes[type.getMeshName()].mesh, dims, {}, {}, nullptr);
}

/// The fragment's body as a function on whole tensors.
FailureOr<func::FuncOp> MpmdToSpmd::outline(mpmd::FragmentOp op) {
  auto global = [](TypeRange types) {
    return llvm::map_to_vector(types, [](Type type) -> Type {
      return cast<mpmd::MeshTensorType>(type).getGlobalTensorType();
    });
  };
  std::string name = op.getMeshName().str();
  for (auto origin : op.getOrigin().getAsRange<mpmd::UserOriginAttr>())
    name += "." + origin.getUserName().getValue().str();
  name += "." + std::to_string(numFragments++);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(function);
  auto made =
      func::FuncOp::create(b, op.getLoc(), name,
                           b.getFunctionType(global(op->getOperandTypes()),
                                             global(op->getResultTypes())));
  made.setPrivate();
  symbols.insert(made);
  made.getBody().takeBody(op.getRegion());
  Operation *end = made.front().getTerminator();
  b.setInsertionPoint(end);
  func::ReturnOp::create(b, end->getLoc(), end->getOperands());
  end->erase();
  if (meshes[op.getMeshName()].mesh.numDevices() == 1)
    return made;
  auto shard = [&](Type type) {
    return shardingOf(cast<mpmd::MeshTensorType>(type));
  };
  for (auto [k, type] : llvm::enumerate(op->getOperandTypes()))
    made.setArgAttr(k, sdy::shardingName, shard(type));
  for (auto [k, type] : llvm::enumerate(op->getResultTypes()))
    made.setResultAttr(k, sdy::shardingName, shard(type));
  return made;
}

LogicalResult MpmdToSpmd::convertFragment(mpmd::FragmentOp op) {
  SmallVector<Attribute> in, out;
  SmallVector<Type> types;
  for (Type type : op->getOperandTypes()) {
    FailureOr<spmd::LayoutAttr> layout = layoutOf(op, type);
    if (failed(layout))
      return failure();
    in.push_back(*layout);
  }
  for (Type type : op->getResultTypes()) {
    FailureOr<spmd::LayoutAttr> layout = layoutOf(op, type);
    if (failed(layout))
      return failure();
    auto whole = cast<mpmd::MeshTensorType>(type).getGlobalTensorType();
    types.push_back(whole.clone(layout->shardShape(whole.getShape())));
    out.push_back(*layout);
  }
  if (out.empty())
    return success(); // it gives nothing
  FailureOr<func::FuncOp> callee = outline(op);
  if (failed(callee))
    return failure();
  SmallVector<Value> inputs = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return map.lookup(value); });
  auto call =
      spmd::CallOp::create(b, op.getLoc(), types, callee->getName(), inputs,
                           b.getArrayAttr(in), b.getArrayAttr(out));
  map.map(op->getResults(), call->getResults());
  return success();
}

LogicalResult MpmdToSpmd::convertTransfer(mpmd::TransferOp op) {
  FailureOr<spmd::LayoutAttr> from = layoutOf(op, op.getTensor().getType());
  FailureOr<spmd::LayoutAttr> to = layoutOf(op, op.getType());
  if (failed(from) || failed(to))
    return failure();
  Value part = map.lookup(op.getTensor());
  if (*from != *to) {
    RankedTensorType whole = op.getType().getGlobalTensorType();
    Value init = emptyPart(b, op.getLoc(), whole.getShape(),
                           whole.getElementType(), *to);
    part = spmd::MoveOp::create(b, op.getLoc(), TypeRange(init.getType()), part,
                                init, *from, *to, whole.getShape())
               ->getResult(0);
  }
  map.map(op.getResult(), part);
  return success();
}

LogicalResult MpmdToSpmd::convertReturn(Operation *end) {
  for (OpOperand &returned : end->getOpOperands()) {
    Type whole = function.getResultTypes()[returned.getOperandNumber()];
    returned.set(spmd::ShardToFullOp::create(b, end->getLoc(), whole,
                                             map.lookup(returned.get()))
                     .getFull());
  }
  return success();
}

LogicalResult MpmdToSpmd::convert(Operation *op) {
  b.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](mpmd::FragmentOp each) { return convertFragment(each); })
      .Case([&](mpmd::TransferOp each) { return convertTransfer(each); })
      .Case([&](func::ReturnOp each) { return convertReturn(each); })
      .Default([&](Operation *) {
        return ir::emitUnsupported(op) << "stands outside a fragment; "
                                          "mpmd-assign-meshes gives it a mesh";
      });
}

LogicalResult MpmdToSpmd::run() {
  if (failed(numberDevices(mpmd::topologyOf(function))) ||
      failed(convertSignature()))
    return failure();
  SmallVector<Operation *> ops;
  for (Operation &op : function.front())
    if (op.getDialect() != b.getContext()->getLoadedDialect("spmd"))
      ops.push_back(&op);
  for (Operation *op : ops)
    if (failed(convert(op)))
      return failure();
  for (Operation *op : llvm::reverse(ArrayRef(ops).drop_back()))
    op->erase();
  function.front().eraseArguments(0, function.getNumArguments());
  function->removeAttr(mpmd::topologyName);
  return success();
}

struct ConvertMpmdToSpmd : impl::ConvertMpmdToSpmdBase<ConvertMpmdToSpmd> {
  using ConvertMpmdToSpmdBase::ConvertMpmdToSpmdBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return markAllAnalysesPreserved();
    if (failed(MpmdToSpmd(getOperation(), function).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
