// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/sdy/CollectiveLowering.h"
#include "dialect/conversion/sdy/ManualCode.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/sdy/FineAxes.h"
#include "dialect/spmd/SpmdDialect.h"
#include "dialect/stablehlo/Companions.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTSDYTOSPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// Programs over whole tensors, some of which have a sharding.

namespace {

/// Calls `visit` with each sharding in `function` and where it stands.
void forEachSharding(
    func::FuncOp function,
    function_ref<void(Operation *, sdy::TensorShardingAttr)> visit) {
  for (unsigned k = 0; k < function.getNumArguments(); ++k)
    if (auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
            k, sdy::shardingName))
      visit(function, sharding);
  for (unsigned k = 0; k < function.getNumResults(); ++k)
    if (auto sharding = function.getResultAttrOfType<sdy::TensorShardingAttr>(
            k, sdy::shardingName))
      visit(function, sharding);
  function.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs()) {
      if (auto one = dyn_cast<sdy::TensorShardingAttr>(attribute.getValue()))
        visit(op, one);
      else if (auto each = dyn_cast<sdy::TensorShardingPerValueAttr>(
                   attribute.getValue()))
        for (sdy::TensorShardingAttr sharding : each.getShardings())
          visit(op, sharding);
    }
  });
}

/// The sharding that an operation which computes nothing asks for: a
/// constraint, or a collective on whole tensors. Null for others.
sdy::TensorShardingAttr askedOf(Operation *op) {
  if (isa<sdy::ShardingConstraintOp, sdy::ReshardOp>(op))
    return op->getAttrOfType<sdy::TensorShardingAttr>("sharding");
  if (isa<sdy::AllGatherOp, sdy::AllSliceOp, sdy::AllToAllOp, sdy::AllReduceOp,
          sdy::ReduceScatterOp, sdy::CollectivePermuteOp>(op))
    return op->getAttrOfType<sdy::TensorShardingAttr>("out_sharding");
  return {};
}

/// The mesh of a program, its axes cut where a sharding takes a part of one.
class FineMesh {
public:
  /// Fails with an error at the sharding that does not suit.
  LogicalResult take(Operation *op, sdy::TensorShardingAttr sharding);
  LogicalResult finish(Operation *op);
  ArrayRef<int64_t> sizes() const {
    return axes ? axes->sizes() : ArrayRef<int64_t>();
  }
  /// The layout of a sharding. The axes that it takes were taken before.
  spmd::LayoutAttr layoutOf(sdy::TensorShardingAttr sharding) const {
    return layoutOfCuts(sharding.getContext(), axes->sizes(),
                        axes->cutsOf(sharding));
  }

private:
  std::optional<sdy::FineAxes> axes;
};

LogicalResult FineMesh::take(Operation *op, sdy::TensorShardingAttr sharding) {
  sdy::MeshAttr own = sdy::meshOf(op, sharding.getMesh());
  if (!own || own.numDevices() == 1)
    return success();
  if (axes && axes->getMesh() != own)
    return ir::emitUnsupported(op) << "has a sharding of a second mesh";
  for (auto [k, id] : llvm::enumerate(own.getDeviceIds()))
    if (id != int64_t(k))
      return ir::emitUnsupported(op)
             << "has a sharding of a mesh that lists its devices";
  // A result left unreduced along an axis may as well be reduced at once.
  if (!axes)
    axes.emplace(own);
  axes->take(sharding);
  return success();
}

LogicalResult FineMesh::finish(Operation *op) {
  StringAttr fault = axes ? axes->finish() : StringAttr();
  if (fault)
    return ir::emitUnsupported(op)
           << "has shardings that cut axis '" << fault.getValue()
           << "' in ways that do not fit each other";
  return success();
}

/// Puts constraints behind values.
class Constrain {
public:
  Constrain(func::FuncOp function, const FineMesh &mesh)
      : function(function), mesh(mesh), b(function.getContext()) {}
  LogicalResult run();

private:
  Value constrain(Operation *op, Value value, sdy::TensorShardingAttr sharding);
  void constrainUses(Operation *op, Value value,
                     sdy::TensorShardingAttr sharding);

  func::FuncOp function;
  const FineMesh &mesh;
  OpBuilder b;
  bool isFailed = false;
};

Value Constrain::constrain(Operation *op, Value value,
                           sdy::TensorShardingAttr sharding) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  sdy::MeshAttr own = sdy::meshOf(op, sharding.getMesh());
  if (!type || type.getRank() == 0 || !own || own.numDevices() == 1)
    return value;
  spmd::LayoutAttr layout = mesh.layoutOf(sharding);
  SmallVector<int64_t> open, priorities;
  for (auto [dim, each] : llvm::enumerate(sharding.getDims())) {
    if (!each.getIsClosed())
      open.push_back(dim);
    priorities.push_back(std::max<int64_t>(each.getPriority(), 0));
    if (type.isDynamicDim(dim) ||
        (layout.parts(dim) > 1 && type.getDimSize(dim) < layout.parts(dim))) {
      ir::emitUnsupported(op) << "has dimension " << dim << " of " << type
                              << " cut in " << layout.parts(dim)
                              << " parts, of which some would be empty; cut it "
                                 "over fewer devices, or leave it whole";
      isFailed = true;
      return value;
    }
  }
  return spmd::LayoutConstraintOp::create(
      b, value.getLoc(), value, layout,
      open.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(open),
      llvm::all_equal(priorities) ? DenseI64ArrayAttr()
                                  : b.getDenseI64ArrayAttr(priorities));
}

void Constrain::constrainUses(Operation *op, Value value,
                              sdy::TensorShardingAttr sharding) {
  b.setInsertionPointAfterValue(value);
  Value made = constrain(op, value, sharding);
  if (made != value)
    value.replaceAllUsesExcept(made, made.getDefiningOp());
}

LogicalResult Constrain::run() {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (BlockArgument argument : function.getArguments())
    if (auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
            argument.getArgNumber(), sdy::shardingName))
      constrainUses(function, argument, sharding);
  for (Operation *op : ops) {
    if (auto member = dyn_cast<sdy::ShardingGroupOp>(op)) {
      if (int64_t(
              cast<RankedTensorType>(member.getInput().getType()).getRank()) >
          0) {
        b.setInsertionPoint(op);
        spmd::SameLayoutOp::create(b, op->getLoc(), member.getInput(),
                                   member.getGroupId());
      }
      op->erase();
    } else if (sdy::TensorShardingAttr sharding = askedOf(op)) {
      b.setInsertionPoint(op);
      op->getResult(0).replaceAllUsesWith(
          constrain(op, op->getOperand(0), sharding));
      op->erase();
    } else if (auto each = op->getAttrOfType<sdy::TensorShardingPerValueAttr>(
                   sdy::shardingName)) {
      for (auto [result, sharding] :
           llvm::zip(op->getResults(), each.getShardings()))
        constrainUses(op, result, sharding);
      op->removeAttr(sdy::shardingName);
    }
  }
  Operation *end = function.front().getTerminator();
  b.setInsertionPoint(end);
  for (OpOperand &returned : end->getOpOperands())
    if (auto sharding = function.getResultAttrOfType<sdy::TensorShardingAttr>(
            returned.getOperandNumber(), sdy::shardingName))
      returned.set(constrain(function, returned.get(), sharding));
  return failure(isFailed);
}

} // namespace

/// Makes spmd.layout_constraint operations of Shardy's annotations: those of
/// arguments, results and operations, and sharding constraints. Axes of which
/// some sharding takes a part become several axes of the mesh. Fails with an
/// error at what has no such form: unreduced axes, several meshes, meshes that
/// list their devices.
static LogicalResult constrainLayouts(func::FuncOp function) {
  FineMesh mesh;
  LogicalResult result = success();
  forEachSharding(function, [&](Operation *op, sdy::TensorShardingAttr each) {
    if (succeeded(result))
      result = mesh.take(op, each);
  });
  if (failed(result) || failed(mesh.finish(function)))
    return failure();
  return mesh.sizes().empty() ? success() : Constrain(function, mesh).run();
}

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
