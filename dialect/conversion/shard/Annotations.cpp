// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what a program asks of the layouts of its tensors.
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

namespace mgpu::conversion {

using namespace mlir;

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

} // namespace mgpu::conversion
