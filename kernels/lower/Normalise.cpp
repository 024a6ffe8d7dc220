// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/Normalise.h"

#include "kernels/lower/ExpandNvidia.h"
#include "kernels/lower/ExpandOps.h"
#include "kernels/lower/ExpandVectors.h"
#include "kernels/lower/LiftControl.h"
#include "kernels/lower/SubgroupMatrix.h"
#include "kernels/lower/SubgroupProducts.h"
#include "kernels/lower/WarpExecute.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace mgpu::kernels {

/// The value of a cluster query where each cluster is one block; null for other
/// operations.
static Value clusterValue(Operation *op, OpBuilder &b) {
  Location loc = op->getLoc();
  if (auto id = dyn_cast<gpu::ClusterIdOp>(op))
    return gpu::BlockIdOp::create(b, loc, id.getDimension());
  if (auto dim = dyn_cast<gpu::ClusterDimOp>(op))
    return gpu::GridDimOp::create(b, loc, dim.getDimension());
  if (isa<gpu::ClusterBlockIdOp>(op))
    return arith::ConstantIndexOp::create(b, loc, 0);
  if (isa<gpu::ClusterDimBlocksOp>(op))
    return arith::ConstantIndexOp::create(b, loc, 1);
  return {};
}

/// A broadcast is a shuffle of all lanes from one: all lanes are there, so the
/// first active one is lane 0.
static void expandBroadcast(gpu::SubgroupBroadcastOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto number = [&](int32_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  };
  Value from = op.getLane() ? op.getLane() : number(0), value = op.getSrc();
  const bool isIndex = value.getType().isIndex();
  if (isIndex)
    value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  Value shuffled = gpu::ShuffleOp::create(b, loc, value, from, number(32),
                                          gpu::ShuffleMode::IDX)
                       .getShuffleResult();
  if (isIndex)
    shuffled = arith::IndexCastOp::create(b, loc, b.getIndexType(), shuffled);
  op.replaceAllUsesWith(shuffled);
  op.erase();
}

/// Makes a nest of scf.for, whose iterations combine the reductions in order:
/// scf::parallelForToNestedFors takes loops without results only.
static void nestLoops(scf::ParallelOp op) {
  auto makeBody = [&](OpBuilder &b, Location, ValueRange ids,
                      ValueRange carried) {
    IRMapping map;
    map.map(op.getInductionVars(), ids);
    for (Operation &each : op.getBody()->without_terminator())
      b.clone(each, map);
    auto reduce = cast<scf::ReduceOp>(op.getBody()->getTerminator());
    scf::ValueVector next;
    for (auto [k, region] : llvm::enumerate(reduce.getReductions())) {
      Block &combine = region.front();
      map.map(combine.getArgument(0), carried[k]);
      map.map(combine.getArgument(1),
              map.lookupOrDefault(reduce.getOperands()[k]));
      for (Operation &each : combine.without_terminator())
        b.clone(each, map);
      next.push_back(
          map.lookupOrDefault(combine.getTerminator()->getOperand(0)));
    }
    return next;
  };
  OpBuilder b(op);
  scf::LoopNest nest =
      scf::buildLoopNest(b, op.getLoc(), op.getLowerBound(), op.getUpperBound(),
                         op.getStep(), op.getInitVals(), makeBody);
  op.replaceAllUsesWith(nest.results);
  op.erase();
}

LogicalResult normaliseKernel(ModuleOp module, Dim3 block, NvidiaOps ops) {
  // The dialects of what is written here and by eraseDeadCode: a text that has
  // none of their operations has not loaded them.
  module.getContext()
      ->loadDialect<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    ub::UBDialect, vector::VectorDialect>();
  if (failed(liftControl(module)))
    return failure();
  expandNvidia(module, ops);
  // By a walk, as the pass of these patterns also erases what nobody uses,
  // which the verifiers are to see.
  RewritePatternSet indices(module.getContext());
  affine::populateAffineExpandIndexOpsPatterns(indices);
  walkAndApplyPatterns(module, std::move(indices));
  PassManager lowering(module.getContext());
  lowering.enableVerifier(false);
  lowering.addPass(createLowerAffinePass());
  if (failed(lowering.run(module)))
    return failure();
  SmallVector<Operation *> clusters;
  SmallVector<scf::ParallelOp> parallels; // outer ones last
  SmallVector<gpu::SubgroupBroadcastOp> broadcasts;
  module.walk([&](Operation *op) {
    if (auto broadcast = dyn_cast<gpu::SubgroupBroadcastOp>(op))
      broadcasts.push_back(broadcast);
    if (isa<gpu::ClusterIdOp, gpu::ClusterDimOp, gpu::ClusterBlockIdOp,
            gpu::ClusterDimBlocksOp>(op))
      clusters.push_back(op);
    else if (auto parallel = dyn_cast<scf::ParallelOp>(op))
      parallels.push_back(parallel);
  });
  for (Operation *op : clusters) {
    OpBuilder b(op);
    op->getResult(0).replaceAllUsesWith(clusterValue(op, b));
    op->erase();
  }
  llvm::for_each(broadcasts, expandBroadcast);
  llvm::for_each(parallels, nestLoops);
  if (failed(makeSubgroupProducts(module, block)) ||
      failed(expandVectors(module)))
    return failure();
  expandOperations(module);
  if (failed(checkSubgroupMatrices(module, block)))
    return failure();
  return lowerWarpExecution(module, block);
}

} // namespace mgpu::kernels
