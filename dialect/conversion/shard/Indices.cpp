// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of grids and devices.
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

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

/// Sizes of the part of a tensor of the given sizes.
static LogicalResult convertShardShape(shard::ShardShapeOp op) {
  shard::ShardingOp sharding = shardingOf(op.getSharding());
  auto dims = foldIndices(op.getDims(), op.getDimsDynamic());
  if (!sharding || !dims)
    return ir::emitUnsupported(op) << "'shard.shard_shape' needs the sharding "
                                      "of an annotated tensor, and constants "
                                      "for 'dims'";
  if (hasOwnSizes(sharding))
    return ir::emitUnsupported(op)
           << "'shard.shard_shape' of a sharding with 'halo_sizes' or "
              "'sharded_dims_offsets' is not supported";
  OpBuilder b(op);
  ArrayRef<int64_t> grid = gridOf(op, sharding.getGridAttr());
  auto split = sharding.getSplitAxes().getAxes();
  for (auto [dim, result] : llvm::enumerate(op.getResult())) {
    int64_t parts = dim < split.size()
                        ? countAlong(grid, axesOf(split[dim].asArrayRef()))
                        : 1;
    if ((*dims)[dim] % parts != 0)
      return ir::emitUnsupported(op)
             << "dimension " << dim << " of size " << (*dims)[dim]
             << " is not divisible into " << parts << " equal parts";
    result.replaceAllUsesWith(constant(b, op.getLoc(), (*dims)[dim] / parts));
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

} // namespace mgpu::conversion
