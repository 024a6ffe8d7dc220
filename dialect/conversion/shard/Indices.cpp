// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of grids and devices.
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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

} // namespace mgpu::conversion
