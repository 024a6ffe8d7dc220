// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program asks of the layouts of its tensors.
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

LogicalResult convertShard(shard::ShardOp op) {
  shard::ShardingOp sharding = shardingOf(op.getSharding());
  if (!sharding)
    return ir::emitUnsupported(op)
           << "takes the sharding of a tensor that has no 'shard.shard'; "
              "annotate that tensor";
  if (hasOwnSizes(sharding))
    return ir::emitUnsupported(sharding)
           << "an annotation with 'halo_sizes' or 'sharded_dims_offsets' is "
              "not supported; split the tensor in equal parts";
  ArrayRef<int64_t> grid = gridOf(op, sharding.getGridAttr());
  auto type = cast<RankedTensorType>(op.getType());
  SmallVector<Axes> cuts(type.getRank());
  for (auto [dim, axes] : llvm::enumerate(sharding.getSplitAxes())) {
    if (dim >= cuts.size())
      return op.emitOpError() << "splits dimension " << dim << " of " << type;
    for (int64_t axis : axesOf(axes.asArrayRef())) {
      if (axis >= int64_t(grid.size()))
        return sharding.emitOpError()
               << "names axis " << axis << " of grid '" << sharding.getGrid()
               << "', which has " << grid.size();
      cuts[dim].push_back(axis);
    }
    int64_t parts = countAlong(grid, cuts[dim]);
    if (type.isDynamicDim(dim) || type.getDimSize(dim) < parts)
      return ir::emitUnsupported(op)
             << "dimension " << dim << " of " << type << " cannot be cut in "
             << parts << " parts";
  }
  OpBuilder b(op);
  auto constraint = spmd::LayoutConstraintOp::create(
      b, op.getLoc(), op.getSrc(), layoutOfCuts(b.getContext(), grid, cuts),
      DenseI64ArrayAttr());
  op.getResult().replaceAllUsesWith(constraint.getResult());
  return success();
}

} // namespace mgpu::conversion
