// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/conversion/spmd/SavedTensors.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <fmt/format.h>

namespace mgpu::conversion {

#define GEN_PASS_DEF_PLACEARGUMENTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

Value emptyLike(OpBuilder &b, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(b, loc, tensor.getShape(),
                                 tensor.getElementType());
}

/// Places the arguments and results of one function on `devices` devices.
class Placement {
public:
  Placement(func::FuncOp function, int64_t devices)
      : function(function), devices(devices), b(function.getBody()) {}

  LogicalResult run();

private:
  spmd::LayoutAttr layoutOr(spmd::LayoutAttr layout, Type full) {
    return layout ? layout
                  : spmd::replicated(b.getContext(), devices,
                                     cast<RankedTensorType>(full).getRank());
  }
  Value shardOf(BlockArgument argument);
  LogicalResult placeArgument(BlockArgument argument);
  LogicalResult placeResults(Operation *end);
  FailureOr<Value> shardOfResult(OpOperand &returned);
  void placeResult(OpOperand &returned, Value shard);
  Value savedState(Value value, Value own, spmd::LayoutAttr layout);
  IntegerAttr aliasOf(unsigned index) {
    return function.getResultAttrOfType<IntegerAttr>(index, spmd::aliasName);
  }
  spmd::LayoutAttr layoutOfResult(unsigned index) {
    return layoutOr(spmd::layoutOfResult(function, index),
                    function.getResultTypes()[index]);
  }
  void takeAttributes();
  func::FuncOp function;
  int64_t devices;
  OpBuilder b;
  DenseMap<Value, Value> shards; ///< by argument
  SmallVector<Value> homes;      ///< shards of arguments that get a next state
  llvm::SmallDenseSet<unsigned> onHost; ///< results that the program copied
                                        ///< there itself
};

/// The device's shard of an argument: a copy, made where the function begins.
Value Placement::shardOf(BlockArgument argument) {
  Value &shard = shards[argument];
  if (shard)
    return shard;
  auto type = cast<RankedTensorType>(argument.getType());
  spmd::LayoutAttr layout = layoutOr(spmd::layoutOf(function, argument), type);
  b.setInsertionPointToStart(&function.front());
  Value init = emptyPart(b, argument.getLoc(), type.getShape(),
                         type.getElementType(), layout);
  shard = spmd::DistributeOp::create(b, argument.getLoc(),
                                     TypeRange(init.getType()), argument, init,
                                     layout)
              ->getResult(0);
  return shard;
}

/// Whether the program says itself when it copies from or to the host.
static bool isOfHost(Operation *op) {
  return isa_and_nonnull<spmd::DistributeOp, spmd::CollectOp>(op);
}

LogicalResult Placement::placeArgument(BlockArgument argument) {
  SmallVector<OpOperand *> uses = llvm::map_to_vector(
      argument.getUses(), [](OpOperand &use) { return &use; });
  for (OpOperand *use : uses) {
    if (isOfHost(use->getOwner()))
      continue; // it takes the argument where that is
    Value shard = shardOf(argument);
    if (auto cut = dyn_cast<spmd::FullToShardOp>(use->getOwner())) {
      cut.replaceAllUsesWith(shard);
      cut.erase();
    } else if (shard.getType() == argument.getType()) {
      use->set(shard);
    } else {
      return use->getOwner()->emitOpError()
             << "uses all of an argument of which each device has a part; "
                "take the part with spmd.full_to_shard";
    }
  }
  return success();
}

/// The value that `make` makes of `type`, on the devices that hold a part.
static Value onMesh(OpBuilder &b, Location loc, spmd::LayoutAttr layout,
                    Type type, function_ref<Value(OpBuilder &)> make) {
  if (!layout.getFirst())
    return make(b);
  Value made;
  return spmd::OnOp::create(b, loc, type, layout.firstDevice(),
                            layout.endDevice(),
                            [&](OpBuilder &inner) -> ValueRange {
                              made = make(inner);
                              return made;
                            })
      ->getResult(0);
}

/// Where `value` is, or is a view of, the shard of an argument that gets a next
/// state: a copy of it, made before any is stored.
Value Placement::savedState(Value value, Value own, spmd::LayoutAttr layout) {
  if (value == own || !llvm::is_contained(homes, sourceOfViews(value)))
    return value;
  return onMesh(b, value.getLoc(), layout, value.getType(),
                [&](OpBuilder &inner) { return copyOf(inner, value); });
}

/// The device's part of a result.
FailureOr<Value> Placement::shardOfResult(OpOperand &returned) {
  unsigned index = returned.getOperandNumber();
  auto join = returned.get().getDefiningOp<spmd::ShardToFullOp>();
  Value shard = join ? join.getShard() : returned.get();
  auto whole = cast<RankedTensorType>(function.getResultTypes()[index]);
  if (cast<RankedTensorType>(shard.getType()).getShape() !=
      ArrayRef(layoutOfResult(index).shardShape(whole.getShape())))
    return returned.getOwner()->emitOpError()
           << "returns one device's part as result " << index
           << "; make the result of the parts with spmd.shard_to_full";
  IntegerAttr alias = aliasOf(index);
  Value own = alias ? shardOf(function.getArgument(alias.getInt())) : Value();
  b.setInsertionPoint(returned.getOwner());
  return savedState(shard, own, layoutOfResult(index));
}

void Placement::placeResult(OpOperand &returned, Value shard) {
  unsigned index = returned.getOperandNumber();
  Location loc = returned.get().getLoc();
  Type type = function.getResultTypes()[index];
  auto join = returned.get().getDefiningOp<spmd::ShardToFullOp>();
  b.setInsertionPoint(returned.getOwner());
  Value full;
  if (IntegerAttr alias = aliasOf(index)) {
    full = function.getArgument(alias.getInt());
    shard = onMesh(b, loc, layoutOfResult(index), shard.getType(),
                   [&](OpBuilder &inner) {
                     return bufferization::MaterializeInDestinationOp::create(
                                inner, loc, shard, shards[full])
                         .getResult();
                   });
  } else {
    full = emptyLike(b, loc, type);
  }
  returned.set(spmd::CollectOp::create(b, loc, TypeRange(type), shard, full,
                                       layoutOfResult(index))
                   ->getResult(0));
  if (join && join->use_empty()) // one part may be two results
    join.erase();
}

/// Saves what is returned of states first, then stores the next ones.
LogicalResult Placement::placeResults(Operation *end) {
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (IntegerAttr alias = aliasOf(index); alias && !onHost.contains(index))
      homes.push_back(shardOf(function.getArgument(alias.getInt())));
  SmallVector<Value> parts(function.getNumResults());
  for (OpOperand &returned : end->getOpOperands()) {
    if (!isa<RankedTensorType>(returned.get().getType()) ||
        onHost.contains(returned.getOperandNumber()))
      continue;
    FailureOr<Value> part = shardOfResult(returned);
    if (failed(part))
      return failure();
    parts[returned.getOperandNumber()] = *part;
  }
  for (auto [returned, part] : llvm::zip(end->getOpOperands(), parts))
    if (part)
      placeResult(returned, part);
  return success();
}

/// The buffers show from here on what the attributes said.
void Placement::takeAttributes() {
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    auto alias =
        function.getResultAttrOfType<IntegerAttr>(index, spmd::aliasName);
    if (alias && !onHost.contains(index) &&
        !function.getArgAttr(alias.getInt(), "mgpu.role"))
      function.setArgAttr(alias.getInt(), "mgpu.role",
                          b.getStringAttr("resident"));
    for (StringRef name : {spmd::aliasName, spmd::layoutName})
      function.removeResultAttr(index, b.getStringAttr(name));
  }
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.removeArgAttr(index, spmd::layoutName);
}

LogicalResult Placement::run() {
  // Bodies of operations then use the number, and have no operation for it.
  function.walk([&](spmd::DeviceIndexOp op) {
    op->moveBefore(&function.front(), function.front().begin());
  });
  for (OpOperand &returned : function.front().getTerminator()->getOpOperands())
    if (isOfHost(returned.get().getDefiningOp()))
      onHost.insert(returned.getOperandNumber());
  for (BlockArgument argument : function.getArguments())
    if (isa<RankedTensorType>(argument.getType()) &&
        failed(placeArgument(argument)))
      return failure();
  if (failed(placeResults(function.front().getTerminator())))
    return failure();
  takeAttributes();
  return success();
}

/// Whether the signature is one that devices can be given parts of.
LogicalResult checkSignature(func::FuncOp function) {
  auto refuse = [&](Type type, const Twine &what) {
    auto tensor = dyn_cast<TensorType>(type);
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!tensor || (ranked && ranked.hasStaticShape() && !ranked.getEncoding()))
      return success();
    return LogicalResult(ir::emitUnsupported(function)
                         << what << " has type " << type
                         << "; its shape must be static, without an encoding. "
                            "Export the program for the shapes it is run with");
  };
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(refuse(type, "argument " + Twine(index))))
      return failure();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(refuse(type, "result " + Twine(index))))
      return failure();
  return success();
}

/// How many devices a program is for, as its layouts say.
struct Devices {
  int64_t all = 0;   ///< as layouts for all devices say; 0: none says
  int64_t named = 0; ///< one more than the largest number that is named
};

/// Fails where two layouts disagree.
FailureOr<Devices> devicesOf(func::FuncOp function) {
  Devices devices;
  auto take = [&](spmd::LayoutAttr layout) {
    if (!layout)
      return success();
    devices.named = std::max(devices.named, layout.endDevice());
    if (layout.getFirst())
      return success();
    if (devices.all != 0 && devices.all != layout.numDevices())
      return LogicalResult(function.emitError()
                           << "has layouts for " << devices.all << " and for "
                           << layout.numDevices() << " devices");
    devices.all = layout.numDevices();
    return success();
  };
  for (BlockArgument argument : function.getArguments())
    if (failed(take(spmd::layoutOf(function, argument))))
      return failure();
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (failed(take(spmd::layoutOfResult(function, index))))
      return failure();
  function.walk([&](spmd::OnOp op) {
    devices.named = std::max(devices.named, int64_t(op.getEnd()));
  });
  function.walk([&](spmd::MoveOp op) {
    for (spmd::LayoutAttr layout : {op.getFrom(), op.getTo()})
      devices.named = std::max(devices.named, layout.endDevice());
  });
  return devices;
}

struct PlaceArguments : impl::PlaceArgumentsBase<PlaceArguments> {
  using PlaceArgumentsBase::PlaceArgumentsBase;

  /// The number of devices, as the layouts, the module and the option say.
  FailureOr<int64_t> countDevices(func::FuncOp function) {
    FailureOr<Devices> found = devicesOf(function);
    if (failed(found))
      return failure();
    int64_t count = found->all;
    auto agree = [&](int64_t other, const Twine &who) {
      if (count != 0 && count != other)
        return LogicalResult(function.emitError()
                             << "is for " << count << " devices, but " << who
                             << " says " << other);
      count = other;
      return success();
    };
    for (auto config : getOperation().getOps<ir::DeviceConfigOp>())
      if (failed(
              agree(config.getConfig().getNumDevices(), "mgpu.device_config")))
        return failure();
    if (devices != 0 && failed(agree(devices, "--devices")))
      return failure();
    if (count == 0)
      return std::max(found->named, int64_t(1));
    if (count < found->named)
      return function.emitError()
             << "names device " << found->named - 1 << "; there are " << count;
    return count;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return;
    if (!function.getBody().hasOneBlock()) {
      ir::emitUnsupported(function)
          << "branches between blocks; a tensor program has scf.if and scf.for";
      return signalPassFailure();
    }
    if (failed(checkSignature(function)))
      return signalPassFailure();
    FailureOr<int64_t> count = countDevices(function);
    if (failed(count))
      return signalPassFailure();
    if (module.getOps<ir::DeviceConfigOp>().empty()) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      ir::DeviceConfigOp::create(
          b, function.getLoc(), "config",
          ir::DeviceConfigAttr::get(&getContext(), *count, nullptr));
    }
    if (failed(Placement(function, *count).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
