// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/sdy/Annotated.h"
#include "dialect/conversion/sdy/CollectiveLowering.h"
#include "dialect/conversion/sdy/Manual.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/Companions.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTSDYTOSPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// How many devices
//===----------------------------------------------------------------------===//

// More than a program may have, and no overflow of their product.
constexpr int64_t tooMany = spmd::mostDevices + 1;

int64_t numberOf(ModuleOp module, StringRef name) {
  auto number = module->getAttrOfType<IntegerAttr>(name);
  return number ? std::clamp<int64_t>(
                      number.getValue().getLimitedValue(tooMany), 1, tooMany)
                : 1;
}

/// The number of devices that the sharding of `op` gives.
int64_t devicesOf(Operation *op) {
  int64_t devices = 1;
  if (auto text = op->getAttrOfType<StringAttr>("mhlo.sharding"))
    devices = devicesOfText(text);
  if (auto manual = dyn_cast<sdy::ManualComputationOp>(op))
    for (sdy::TensorShardingPerValueAttr each :
         {manual.getInShardings(), manual.getOutShardings()})
      for (sdy::TensorShardingAttr sharding : each.getShardings())
        if (sdy::MeshAttr mesh = sdy::meshOf(op, sharding.getMesh()))
          devices = std::max(devices, mesh.numDevices());
  return devices;
}

/// The number of devices that the groups of a collective name.
int64_t devicesOfGroups(Operation *op) {
  int64_t devices = 1;
  auto groups = op->getAttrOfType<DenseIntElementsAttr>("replica_groups");
  if (auto pairs =
          op->getAttrOfType<DenseIntElementsAttr>("source_target_pairs"))
    groups = pairs;
  if (groups && isCollective(op))
    for (int64_t id : groups.getValues<int64_t>())
      devices = std::max(devices, id + 1);
  return devices;
}

/// The processes that the module and its meshes say; where these say nothing,
/// as many as its groups of devices name.
ProcessGrid gridOf(ModuleOp module, func::FuncOp function) {
  ProcessGrid grid;
  grid.replicas = numberOf(module, "mhlo.num_replicas");
  int64_t devices = grid.replicas * numberOf(module, "mhlo.num_partitions");
  function.walk(
      [&](Operation *op) { devices = std::max(devices, devicesOf(op)); });
  for (unsigned k = 0; k < function.getNumArguments(); ++k)
    if (auto text = function.getArgAttrOfType<StringAttr>(k, "mhlo.sharding"))
      devices = std::max(devices, devicesOfText(text));
  if (devices == 1)
    function.walk([&](Operation *op) {
      devices = std::max(devices, devicesOfGroups(op));
    });
  if (devices % grid.replicas != 0)
    grid.replicas = 1;
  grid.partitions = devices / grid.replicas;
  return grid;
}

//===----------------------------------------------------------------------===//
// Programs that are only annotated
//===----------------------------------------------------------------------===//

/// XLA's texts say a mesh for each value, so layouts are not found from them.
bool isAnnotatedByText(ArrayRef<NamedAttribute> attributes) {
  return llvm::any_of(attributes, [&](NamedAttribute attribute) {
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    return text && attribute.getName() == "mhlo.sharding" &&
           devicesOfText(text) != 1;
  });
}

LogicalResult refuse(Operation *op, const Twine &name) {
  return ir::emitUnsupported(op)
         << "'" << name
         << "' has a sharding of XLA, and no manual computation says what each "
            "device does. Export the program with Shardy "
            "(jax_use_shardy_partitioner), from inside jax.shard_map, or "
            "without shardings";
}

LogicalResult checkNoTexts(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (DictionaryAttr all = function.getArgAttrDict(argument.getArgNumber());
        all && isAnnotatedByText(all.getValue()))
      return refuse(
          function,
          ir::nameOf(argument.getLoc(),
                     "argument " + std::to_string(argument.getArgNumber())));
  for (unsigned k = 0; k < function.getNumResults(); ++k)
    if (DictionaryAttr all = function.getResultAttrDict(k);
        all && isAnnotatedByText(all.getValue()))
      return refuse(function, "result " + Twine(k));
  LogicalResult result = success();
  function.walk([&](Operation *op) {
    if (op == function || !isAnnotatedByText(op->getAttrs()))
      return WalkResult::advance();
    result = refuse(op, ir::nameOf(op->getLoc(), op->getName().getStringRef()));
    return WalkResult::interrupt();
  });
  return result;
}

/// Whether some code is of one device, so that the program says what each does.
bool isPartitioned(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isCollective(op) || isManual(op) ? WalkResult::interrupt()
                                                : WalkResult::advance();
      })
      .wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Operations that stay are of the whole program
//===----------------------------------------------------------------------===//

/// Operations that say a sharding and compute nothing.
void removeNotes(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  OpBuilder b(function.getContext());
  for (Operation *op : ops) {
    auto call = dyn_cast<stablehlo::CustomCallOp>(op);
    bool isNote = (call && call.getCallTargetName() == "Sharding") ||
                  isa<mhlo::CopyOp, sdy::ShardingConstraintOp, sdy::ReshardOp,
                      sdy::AllGatherOp, sdy::AllSliceOp, sdy::AllReduceOp,
                      sdy::AllToAllOp, sdy::ReduceScatterOp,
                      sdy::CollectivePermuteOp, sdy::ReplicatedToUnreducedOp,
                      sdy::ShardedToUnreducedOp, sdy::DataFlowEdgeOp,
                      sdy::FuncDataFlowEdgeOp, sdy::PropagationBarrierOp>(op);
    b.setInsertionPoint(op);
    if (isNote && op->getNumOperands() == op->getNumResults()) {
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    } else if (auto constant = dyn_cast<sdy::ConstantOp>(op)) {
      constant.replaceAllUsesWith(
          stablehlo::ConstantOp::create(b, op->getLoc(), constant.getValue())
              .getResult());
      op->erase();
    } else if (auto named = dyn_cast<sdy::NamedComputationOp>(op)) {
      inlineBody(named, named.getBody(), named.getOperands());
    } else if (isa<sdy::ShardingGroupOp>(op)) {
      op->erase();
    }
  }
}

/// Values that a sharding puts on one device are that device's for all.
void takeFromOneDevice(func::FuncOp function, DeviceCode &code) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op->hasAttrOfType<sdy::TensorShardingPerValueAttr>(sdy::shardingName))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    auto each =
        op->getAttrOfType<sdy::TensorShardingPerValueAttr>(sdy::shardingName);
    code.b.setInsertionPointAfter(op);
    for (auto [result, sharding] :
         llvm::zip(op->getResults(), each.getShardings())) {
      sdy::MeshAttr mesh = sdy::meshOf(op, sharding.getMesh());
      if (!mesh || mesh.numDevices() != 1 || mesh.getDeviceIds().empty() ||
          mesh.getDeviceIds()[0] >= code.numDevices())
        continue;
      SmallVector<int64_t> group{mesh.getDeviceIds()[0]};
      for (int64_t device = 0; device < code.numDevices(); ++device)
        if (device != group[0])
          group.push_back(device);
      SmallVector<OpOperand *> uses = llvm::map_to_vector(
          result.getUses(), [](OpOperand &use) { return &use; });
      Value taken = code.broadcast(result, {group});
      for (OpOperand *use : uses)
        use->set(taken);
    }
  }
}

struct ConvertSdyToSpmd : impl::ConvertSdyToSpmdBase<ConvertSdyToSpmd> {
  using ConvertSdyToSpmdBase::ConvertSdyToSpmdBase;

  LogicalResult checkCounts() {
    for (StringRef name : {"mhlo.num_replicas", "mhlo.num_partitions"})
      if (auto number = getOperation()->getAttrOfType<IntegerAttr>(name);
          number && number.getValue().slt(1))
        return getOperation().emitError()
               << name << " is " << llvm::toString(number.getValue(), 10, true)
               << "; a program is of one at least";
    return success();
  }

  /// Layouts are of fewer devices than meshes of the text may have.
  LogicalResult checkMeshes() {
    for (auto mesh : getOperation().getOps<sdy::MeshOp>())
      if (mesh.getMesh().numDevices() > spmd::mostDevices)
        return ir::emitUnsupported(mesh)
               << "is for more than " << spmd::mostDevices
               << " devices, which this version does not take";
    return success();
  }

  LogicalResult convertOne(func::FuncOp function) {
    LogicalResult result = isPartitioned(function)
                               ? convert(getOperation(), function)
                               : convertAnnotated(function);
    if (failed(result))
      return failure();
    removeNotes(function);
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      for (StringRef name : {sdy::shardingName.data(), "mhlo.sharding"})
        function.removeArgAttr(k, name);
    for (unsigned k = 0; k < function.getNumResults(); ++k)
      for (StringRef name : {sdy::shardingName.data(), "mhlo.sharding"})
        function.removeResultAttr(k, StringAttr::get(&getContext(), name));
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkCounts()) || failed(checkMeshes()))
      return signalPassFailure();
    for (func::FuncOp function : programsOf(module, entry))
      if (failed(convertOne(function)))
        return signalPassFailure();
    for (auto mesh : llvm::make_early_inc_range(module.getOps<sdy::MeshOp>()))
      if (SymbolTable::symbolKnownUseEmpty(mesh, module))
        mesh.erase();
  }

  LogicalResult convertAnnotated(func::FuncOp function) {
    return success(succeeded(checkNoTexts(function)) &&
                   succeeded(constrainLayouts(function)));
  }

  LogicalResult convert(ModuleOp module, func::FuncOp function) {
    ProcessGrid grid = gridOf(module, function);
    if (grid.devices() > spmd::mostDevices)
      return ir::emitUnsupported(function)
             << "is for more than " << spmd::mostDevices
             << " devices, which this version does not take";
    DeviceCode code(function, grid.devices());
    if (grid.devices() > 1 && module.getOps<ir::DeviceConfigOp>().empty()) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      ir::DeviceConfigOp::create(
          b, function.getLoc(), "config",
          ir::DeviceConfigAttr::get(&getContext(), grid.devices(), nullptr));
    }
    Manual manual(function, code);
    if (failed(manual.inlineAll()))
      return failure();
    takeFromOneDevice(function, code);
    SmallVector<Operation *> collectives;
    function.walk([&](Operation *op) {
      if (isCollective(op))
        collectives.push_back(op);
    });
    for (Operation *op : collectives)
      if (failed(lowerCollective(op, code, grid)))
        return failure();
    removeNotes(function);
    return manual.place();
  }
};

} // namespace

} // namespace mgpu::conversion
