// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what launches of the gpu dialect say alike: sizes, clusters and
// devices.
#include "dialect/conversion/gpu/GpuLaunches.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The sizes as indices, whatever integers they are.
SmallVector<Value> sizesOf(Operation *op, const gpu::KernelDim3 &sizes) {
  OpBuilder b(op);
  SmallVector<Value> indices;
  for (Value size : {sizes.x, sizes.y, sizes.z})
    indices.push_back(size.getType().isIndex()
                          ? size
                          : b.createOrFold<arith::IndexCastOp>(
                                op->getLoc(), b.getIndexType(), size));
  return indices;
}

template <typename Launch>
GpuLaunchShape shapeOfEither(Launch op) {
  GpuLaunchShape shape{sizesOf(op, op.getGridSizeOperandValues()),
                       sizesOf(op, op.getBlockSizeOperandValues()),
                       {},
                       op.getDynamicSharedMemorySize()};
  if (op.hasClusterSize())
    shape.cluster = sizesOf(
        op, {op.getClusterSizeX(), op.getClusterSizeY(), op.getClusterSizeZ()});
  return shape;
}

} // namespace

GpuLaunchShape shapeOf(gpu::LaunchOp op) { return shapeOfEither(op); }

GpuLaunchShape shapeOf(gpu::LaunchFuncOp op) { return shapeOfEither(op); }

FailureOr<Value> deviceFor(Operation *op, const DefaultDevice &now) {
  if (!now.handle && !now.isUnclear)
    for (Value memref : ir::memrefsOf(op))
      if (Value shown = ir::deviceOf(memref))
        return shown;
  return defaultDeviceAt(op, now);
}

LogicalResult answerClusters(Operation *op, const GpuLaunchShape &shape,
                             ir::LaunchOp launch) {
  if (shape.cluster.empty())
    return success(); // without sizes a cluster is one block
  // Longer ones are several launches of a GPU, which would cut clusters.
  constexpr int64_t mostBlocks[] = {2147483647, 65535, 65535};
  SmallVector<int64_t, 3> sizes;
  for (auto [size, grid] : llvm::zip_equal(shape.cluster, shape.grid)) {
    std::optional<int64_t> known = getConstantIntValue(size);
    std::optional<int64_t> blocks = getConstantIntValue(grid);
    if (!known || !blocks)
      return ir::emitUnsupported(op)
             << "asks for clusters of blocks whose sizes, and the grid's, are "
                "not constants";
    if (*known < 1 || *blocks % *known != 0)
      return op->emitOpError("has a grid of ")
             << *blocks << " blocks, which clusters of " << *known
             << " do not divide";
    if (*known > 1 && *blocks > mostBlocks[sizes.size()])
      return ir::emitUnsupported(op)
             << "gives clusters to a grid of " << *blocks
             << " blocks along one dimension";
    sizes.push_back(*known);
  }
  launch->setAttr(ir::clusterName,
                  ir::ClusterAttr::get(op->getContext(), uint32_t(sizes[0]),
                                       uint32_t(sizes[1]), uint32_t(sizes[2])));
  launch.walk([&](Operation *query) {
    OpBuilder b(query);
    Location loc = query->getLoc();
    auto answer = [&](auto asked) {
      const gpu::Dimension axis = asked.getDimension();
      Value size = arith::ConstantIndexOp::create(
          b, loc, *getConstantIntValue(shape.cluster[size_t(axis)]));
      Value block = gpu::BlockIdOp::create(b, loc, axis);
      Value grid = gpu::GridDimOp::create(b, loc, axis);
      llvm::TypeSwitch<Operation *>(query)
          .Case([&](gpu::ClusterIdOp) {
            asked.replaceAllUsesWith(
                arith::DivUIOp::create(b, loc, block, size).getResult());
          })
          .Case([&](gpu::ClusterDimOp) {
            asked.replaceAllUsesWith(
                arith::DivUIOp::create(b, loc, grid, size).getResult());
          })
          .Case([&](gpu::ClusterBlockIdOp) {
            asked.replaceAllUsesWith(
                arith::RemUIOp::create(b, loc, block, size).getResult());
          })
          .Case(
              [&](gpu::ClusterDimBlocksOp) { asked.replaceAllUsesWith(size); });
      query->erase();
    };
    llvm::TypeSwitch<Operation *>(query)
        .Case<gpu::ClusterIdOp, gpu::ClusterDimOp, gpu::ClusterBlockIdOp,
              gpu::ClusterDimBlocksOp>(answer);
  });
  return success();
}

} // namespace mgpu::conversion
