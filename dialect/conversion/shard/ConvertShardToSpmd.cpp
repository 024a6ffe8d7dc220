// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

// Numbers of grids and devices.

using namespace mlir;

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// `axes`, or all axes of the grid where it names none.
static SmallVector<int64_t> axesOrAll(ArrayRef<int16_t> axes,
                                      ArrayRef<int64_t> grid) {
  return axes.empty() ? llvm::to_vector(llvm::seq<int64_t>(0, grid.size()))
                      : axesOf(axes);
}

/// The device before and the one behind along the axes, else -1.
static void convertNeighbors(shard::NeighborsLinearIndicesOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  ArrayRef<int64_t> grid = gridOf(op, op.getGridAttr());
  auto linear = [&](ArrayRef<int64_t> axes, auto indexOf) {
    Value sum = constant(b, loc, 0);
    for (int64_t axis : axes) {
      sum = arith::MulIOp::create(b, loc, sum, constant(b, loc, grid[axis]));
      sum = arith::AddIOp::create(b, loc, sum, indexOf(axis));
    }
    return sum;
  };
  SmallVector<int64_t> axes = axesOf(op.getSplitAxes());
  auto given = [&](int64_t axis) { return op.getDevice()[axis]; };
  Value place = linear(axes, given);
  auto neighbor = [&](int64_t step) {
    Value next = arith::AddIOp::create(b, loc, place, constant(b, loc, step));
    // An index below zero is a large unsigned one.
    Value isThere =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, next,
                              constant(b, loc, countAlong(grid, axes)));
    DenseMap<int64_t, Value> places; // the last axis varies fastest
    Value rest = next;
    for (int64_t axis : llvm::reverse(axes)) {
      Value size = constant(b, loc, grid[axis]);
      places[axis] = arith::RemUIOp::create(b, loc, rest, size);
      rest = arith::DivUIOp::create(b, loc, rest, size);
    }
    Value device = linear(axesOrAll({}, grid), [&](int64_t axis) {
      Value found = places.lookup(axis);
      return found ? found : given(axis);
    });
    return arith::SelectOp::create(b, loc, isThere, device,
                                   constant(b, loc, -1))
        .getResult();
  };
  op.getNeighborDown().replaceAllUsesWith(neighbor(-1));
  op.getNeighborUp().replaceAllUsesWith(neighbor(1));
}

/// Sizes of a device's part of a tensor of the given sizes, with its halos.
static LogicalResult convertShardShape(shard::ShardShapeOp op) {
  shard::ShardingOp sharding = shardingOf(op.getSharding());
  auto dims = foldIndices(op.getDims(), op.getDimsDynamic());
  if (!sharding || !dims)
    return ir::emitUnsupported(op) << "'shard.shard_shape' needs the sharding "
                                      "of an annotated tensor, and constants "
                                      "for 'dims'";
  FailureOr<SmallVector<Cut>> cuts = cutsOfSharding(op, sharding, *dims);
  if (failed(cuts))
    return failure();
  OpBuilder b(op);
  ArrayRef<int64_t> grid = gridOf(op, sharding.getGridAttr());
  SmallVector<OpFoldResult> device =
      getMixedValues(op.getDevice(), op.getDeviceDynamic(), b);
  for (auto [dim, result] : llvm::enumerate(op.getResult())) {
    const Cut &cut = (*cuts)[dim];
    int64_t parts = countAlong(grid, cut.axes), size = (*dims)[dim];
    SmallVector<int64_t> bounds =
        cut.bounds.empty() ? equalBounds(size, parts) : cut.bounds;
    SmallVector<int64_t> sizes;
    for (int64_t part = 0; part < parts; ++part)
      sizes.push_back(cut.low + bounds[part + 1] - bounds[part] + cut.high);
    Value rank = constant(b, op.getLoc(), 0);
    for (int64_t axis : cut.axes) {
      rank = arith::MulIOp::create(b, op.getLoc(), rank,
                                   constant(b, op.getLoc(), grid[axis]));
      rank = arith::AddIOp::create(
          b, op.getLoc(), rank,
          getValueOrCreateConstantIndexOp(b, op.getLoc(), device[axis]));
    }
    result.replaceAllUsesWith(getValueOrCreateConstantIndexOp(
        b, op.getLoc(), valueOfRank(b, op.getLoc(), rank, sizes)));
  }
  return success();
}

LogicalResult convertIndices(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](shard::GridShapeOp each) {
        ArrayRef<int64_t> grid = gridOf(op, each.getGridAttr());
        for (auto [axis, result] :
             llvm::zip(axesOrAll(each.getAxes(), grid), each.getResult()))
          result.replaceAllUsesWith(constant(b, loc, grid[axis]));
        return success();
      })
      .Case([&](shard::ProcessMultiIndexOp each) {
        ArrayRef<int64_t> grid = gridOf(op, each.getGridAttr());
        for (auto [axis, result] :
             llvm::zip(axesOrAll(each.getAxes(), grid), each.getResult()))
          result.replaceAllUsesWith(rankAlong(b, loc, grid, {axis}));
        return success();
      })
      .Case([&](shard::ProcessLinearIndexOp each) {
        each.getResult().replaceAllUsesWith(
            spmd::DeviceIndexOp::create(b, loc, b.getIndexType()).getIndex());
        return success();
      })
      .Case([&](shard::NeighborsLinearIndicesOp each) {
        convertNeighbors(each);
        return success();
      })
      .Case([&](shard::ShardShapeOp each) { return convertShardShape(each); });
}

// Reads what a program asks of the layouts of its tensors.

shard::ShardingOp shardingOf(Value sharding) {
  while (auto get = sharding.getDefiningOp<shard::GetShardingOp>()) {
    auto annotated = get.getSource().getDefiningOp<shard::ShardOp>();
    if (!annotated)
      return nullptr;
    sharding = annotated.getSharding();
  }
  return sharding.getDefiningOp<shard::ShardingOp>();
}

/// Takes what `offsets` says of the next dimension that is cut.
static LogicalResult takeOffsets(shard::ShardingOp sharding,
                                 ArrayRef<int64_t> &offsets, int64_t parts,
                                 int64_t size, Cut &cut) {
  if (int64_t(offsets.size()) <= parts)
    return sharding.emitOpError()
           << "needs " << parts + 1
           << " offsets for each dimension that is cut in " << parts
           << " parts";
  cut.bounds.assign(offsets.begin(), offsets.begin() + parts + 1);
  offsets = offsets.drop_front(parts + 1);
  for (int64_t part = 0; part < parts; ++part)
    if (cut.bounds[part + 1] <= cut.bounds[part])
      return ir::emitUnsupported(sharding)
             << "has offsets that do not grow; each device must have a part";
  if (cut.bounds.front() != 0 || cut.bounds.back() != size)
    return sharding.emitOpError()
           << "has offsets from " << cut.bounds.front() << " to "
           << cut.bounds.back() << " of a dimension of " << size << " elements";
  if (cut.bounds == equalBounds(size, parts))
    cut.bounds.clear();
  return success();
}

/// The axes that cut a dimension, which must be of the grid.
static LogicalResult takeAxes(shard::ShardingOp sharding,
                              ArrayRef<int64_t> grid, ArrayRef<int16_t> axes,
                              Cut &cut) {
  for (int64_t axis : axesOf(axes)) {
    if (axis >= int64_t(grid.size()))
      return sharding.emitOpError()
             << "names axis " << axis << " of grid '" << sharding.getGrid()
             << "', which has " << grid.size();
    cut.axes.push_back(axis);
  }
  return success();
}

FailureOr<SmallVector<Cut>> cutsOfSharding(Operation *op,
                                           shard::ShardingOp sharding,
                                           ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> offsets = sharding.getStaticShardedDimsOffsets();
  ArrayRef<int64_t> halos = sharding.getStaticHaloSizes();
  if (llvm::any_of(offsets, ShapedType::isDynamic) ||
      llvm::any_of(halos, ShapedType::isDynamic))
    return LogicalResult(
        ir::emitUnsupported(sharding)
        << "has a '?' in 'sharded_dims_offsets' or 'halo_sizes'; write "
           "numbers");
  ArrayRef<int64_t> grid = gridOf(op, sharding.getGridAttr());
  SmallVector<Cut> cuts(shape.size());
  for (auto [dim, axes] : llvm::enumerate(sharding.getSplitAxes())) {
    if (dim >= cuts.size()) {
      if (axes.empty())
        continue;
      return LogicalResult(op->emitOpError() << "splits dimension " << dim
                                             << " of " << shape.size());
    }
    if (failed(takeAxes(sharding, grid, axes.asArrayRef(), cuts[dim])))
      return failure();
    int64_t parts = countAlong(grid, cuts[dim].axes);
    if (ShapedType::isDynamic(shape[dim]) || shape[dim] < parts)
      return LogicalResult(ir::emitUnsupported(op)
                           << "dimension " << dim << " cannot be cut in "
                           << parts << " parts");
    if (axes.empty())
      continue;
    if (!sharding.getStaticShardedDimsOffsets().empty() &&
        failed(takeOffsets(sharding, offsets, parts, shape[dim], cuts[dim])))
      return failure();
    if (halos.size() >= 2) {
      cuts[dim].low = halos[0];
      cuts[dim].high = halos[1];
      halos = halos.drop_front(2);
    }
  }
  if (!offsets.empty())
    return LogicalResult(sharding.emitOpError()
                         << "has " << offsets.size()
                         << " offsets more than parts that it cuts");
  return cuts;
}

/// Halos of an annotation say nothing: devices get what operations read.
LogicalResult convertShard(shard::ShardOp op) {
  shard::ShardingOp sharding = shardingOf(op.getSharding());
  if (!sharding)
    return ir::emitUnsupported(op)
           << "takes the sharding of a tensor that has no 'shard.shard'; "
              "annotate that tensor";
  auto type = cast<RankedTensorType>(op.getType());
  FailureOr<SmallVector<Cut>> cuts =
      cutsOfSharding(op, sharding, type.getShape());
  if (failed(cuts))
    return failure();
  for (Cut &cut : *cuts)
    cut.low = cut.high = 0;
  OpBuilder b(op);
  auto constraint = spmd::LayoutConstraintOp::create(
      b, op.getLoc(), op.getSrc(),
      layoutOfCuts(b.getContext(), gridOf(op, sharding.getGridAttr()),
                   ArrayRef<Cut>(*cuts)),
      DenseI64ArrayAttr(), DenseI64ArrayAttr());
  op.getResult().replaceAllUsesWith(constraint.getResult());
  return success();
}

#define GEN_PASS_DEF_CONVERTSHARDTOSPMD
#include "dialect/conversion/Passes.h.inc"

ArrayRef<int64_t> gridOf(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name)
      .getShape();
}

SmallVector<int64_t> axesOf(ArrayRef<int16_t> axes) {
  return SmallVector<int64_t>(axes.begin(), axes.end());
}

std::optional<SmallVector<int64_t>> foldIndices(ArrayRef<int64_t> fixed,
                                                ValueRange dynamic) {
  SmallVector<int64_t> folded(fixed);
  size_t next = 0;
  for (int64_t &each : folded) {
    if (!ShapedType::isDynamic(each))
      continue;
    APInt value;
    if (!matchPattern(dynamic[next++], m_ConstantInt(&value)))
      return std::nullopt;
    each = value.getSExtValue();
  }
  return folded;
}

int64_t linearIndex(ArrayRef<int64_t> sizes, ArrayRef<int64_t> index) {
  int64_t linear = 0;
  for (auto [size, at] : llvm::zip(sizes, index))
    linear = linear * size + at;
  return linear;
}

namespace {

LogicalResult convert(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<shard::GridShapeOp, shard::ProcessMultiIndexOp,
            shard::ProcessLinearIndexOp, shard::NeighborsLinearIndicesOp,
            shard::ShardShapeOp>([](auto each) { return convertIndices(each); })
      .Case<shard::AllGatherOp, shard::AllReduceOp, shard::ReduceOp,
            shard::ReduceScatterOp, shard::AllToAllOp, shard::AllSliceOp,
            shard::BroadcastOp, shard::GatherOp, shard::ScatterOp>(
          [](auto each) { return convertCollective(each); })
      .Case<shard::ShiftOp, shard::SendOp, shard::RecvOp>(
          [](auto each) { return convertExchange(each); })
      .Case([](shard::UpdateHaloOp each) { return convertHalo(each); })
      .Case([](shard::ShardOp each) { return convertShard(each); })
      .Default(success());
}

/// Sizes that the dialect's verifier leaves open. The layout's own says the
/// rest.
LogicalResult checkGrid(shard::GridOp grid) {
  if (llvm::any_of(grid.getShape(), ShapedType::isDynamic))
    return ir::emitUnsupported(grid)
           << "grid '" << grid.getSymName()
           << "' has a size '?'; write how many devices there are";
  return spmd::LayoutAttr::verify([&] { return grid.emitOpError(); },
                                  grid.getShape(), {}, std::nullopt, {}, {});
}

struct ConvertShardToSpmd : impl::ConvertShardToSpmdBase<ConvertShardToSpmd> {
  using ConvertShardToSpmdBase::ConvertShardToSpmdBase;

  /// The devices of the program are those of its grids.
  LogicalResult configure() {
    ModuleOp module = getOperation();
    shard::GridOp first;
    for (auto grid : module.getOps<shard::GridOp>()) {
      if (failed(checkGrid(grid)))
        return failure();
      if (!first)
        first = grid;
      else if (ShapedType::getNumElements(first.getShape()) !=
               ShapedType::getNumElements(grid.getShape()))
        return ir::emitUnsupported(grid)
               << "grids '" << first.getSymName() << "' and '"
               << grid.getSymName() << "' have different numbers of devices";
    }
    if (first && module.getOps<ir::DeviceConfigOp>().empty()) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      ir::DeviceConfigOp::create(
          b, first.getLoc(), "config",
          ir::DeviceConfigAttr::get(
              &getContext(), ShapedType::getNumElements(first.getShape()),
              nullptr));
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(configure()))
      return signalPassFailure();
    SmallVector<Operation *> all;
    module.walk([&](Operation *op) {
      if (isa_and_nonnull<shard::ShardDialect>(op->getDialect()))
        all.push_back(op);
    });
    if (all.empty())
      return markAllAnalysesPreserved();
    for (Operation *op : all)
      if (failed(convert(op)))
        return signalPassFailure();
    for (Operation *op : llvm::reverse(all)) // users first
      if (op->use_empty())
        op->erase();
  }
};

} // namespace

} // namespace mgpu::conversion
