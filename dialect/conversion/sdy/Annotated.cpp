// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/Annotated.h"

#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/sdy/FineAxes.h"
#include "dialect/spmd/SpmdDialect.h"

namespace mgpu::conversion {

using namespace mlir;

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

LogicalResult constrainLayouts(func::FuncOp function) {
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

} // namespace mgpu::conversion
