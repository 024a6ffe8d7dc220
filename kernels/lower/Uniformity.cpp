// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/Uniformity.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

bool isConvergent(Operation *op) {
  return isa<gpu::BarrierOp, gpu::AllReduceOp, gpu::SubgroupReduceOp,
             gpu::ShuffleOp, gpu::RotateOp, gpu::SubgroupMmaLoadMatrixOp,
             gpu::SubgroupMmaStoreMatrixOp, gpu::SubgroupMmaComputeOp,
             gpu::WarpExecuteOnLane0Op, nvgpu::LdMatrixOp>(op);
}

bool meetsInSubgroup(Operation *op) {
  return isa<gpu::ShuffleOp, gpu::RotateOp, gpu::SubgroupReduceOp>(op) ||
         (isa<gpu::BarrierOp>(op) && !madeFor(op).empty());
}

Operation *findConvergent(Operation *op) {
  Operation *found = nullptr;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    if (!isConvergent(inner))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

bool isPrivateAlloca(Operation *op) {
  return isa<memref::AllocaOp>(op) && !ir::hasMark(op, ir::Mark::Workgroup);
}

bool isIdAlongX(Operation *op) {
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return id.getDimension() == gpu::Dimension::x;
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    return id.getDimension() == gpu::Dimension::x;
  return false;
}

bool isReductionOfNeighbours(Operation *op) {
  if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(op))
    return !reduce.getClusterSize() && reduce.getClusterStride() == 1 &&
           !isa<VectorType>(reduce.getType());
  return isa<gpu::AllReduceOp>(op);
}

Uniformity::Uniformity(func::FuncOp kernel, Among among) : among(among) {
  // Optimistic: everything is uniform until a cause says otherwise.
  do {
    changed = false;
    kernel.getBody().walk<WalkOrder::PreOrder>(
        [&](Operation *op) { visit(op); });
  } while (changed);
}

bool Uniformity::allUniform(ValueRange values) const {
  return llvm::all_of(values, [&](Value value) { return isUniform(value); });
}

void Uniformity::markVarying(Value value) {
  changed |= varying.insert(value).second;
}

void Uniformity::markAll(ValueRange values) {
  for (Value value : values)
    markVarying(value);
}

bool Uniformity::mayRunOnce(Operation *op) const {
  if (among == Among::Neighbours)
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
           (isMemoryEffectFree(op) ||
            isa<memref::LoadOp, vector::LoadOp>(op)) &&
           !isIdAlongX(op);
  return op->getNumRegions() == 0 && op->getNumResults() > 0 &&
         !isa<gpu::ThreadIdOp, gpu::GlobalIdOp, gpu::LaneIdOp,
              gpu::SubgroupIdOp>(op) &&
         !isConvergent(op) && !isPrivateAlloca(op) &&
         (isMemoryEffectFree(op) || isa<memref::LoadOp>(op));
}

bool Uniformity::isUniformOp(Operation *op) const {
  return mayRunOnce(op) && allUniform(op->getOperands());
}

bool Uniformity::hasUniformControl(Operation *op) const {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return allUniform(
        {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return isUniform(branch.getCondition());
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return among == Among::Block &&
           isUniform(loop.getConditionOp().getCondition());
  return false;
}

void Uniformity::visit(Operation *op) {
  auto markWhereVarying = [&](ValueRange targets, ValueRange sources) {
    for (auto [target, source] : llvm::zip_equal(targets, sources))
      if (!isUniform(source))
        markVarying(target);
  };
  if (op->hasTrait<OpTrait::IsTerminator>() ||
      (among == Among::Neighbours && isReductionOfNeighbours(op)))
    return;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (!hasUniformControl(op)) {
      markAll(loop.getBody()->getArguments());
      markAll(loop.getResults());
      return;
    }
    markWhereVarying(loop.getRegionIterArgs(), loop.getInitArgs());
    markWhereVarying(loop.getRegionIterArgs(), loop.getYieldedValues());
    markWhereVarying(loop.getResults(), loop.getRegionIterArgs());
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!hasUniformControl(op)) {
      markAll(branch.getResults());
    } else if (branch.getNumResults() > 0) {
      markWhereVarying(branch.getResults(), branch.thenYield().getOperands());
      markWhereVarying(branch.getResults(), branch.elseYield().getOperands());
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    if (!hasUniformControl(op)) {
      markAll(loop.getBeforeArguments());
      markAll(loop.getAfterArguments());
      markAll(loop.getResults());
      return;
    }
    markWhereVarying(loop.getBeforeArguments(), loop.getInits());
    markWhereVarying(loop.getBeforeArguments(),
                     loop.getYieldOp().getOperands());
    markWhereVarying(loop.getAfterArguments(), loop.getConditionOp().getArgs());
    markWhereVarying(loop.getResults(), loop.getConditionOp().getArgs());
    return;
  }
  if (isa<gpu::AllReduceOp>(op)) {
    // Its result is uniform; its body sees one thread's value at a time.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        markAll(block.getArguments());
    return;
  }
  if (among == Among::Block && isa<memref::AllocaOp>(op) &&
      !isPrivateAlloca(op))
    return;
  if (isUniformOp(op))
    return;
  markAll(op->getResults());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      markAll(block.getArguments());
}

LogicalResult checkBarriers(func::FuncOp kernel) {
  Uniformity uniformity(kernel);
  WalkResult result = kernel.walk([&](Operation *op) {
    if (!isa<gpu::BarrierOp, gpu::AllReduceOp>(op) || !madeFor(op).empty())
      return WalkResult::advance();
    for (Operation *above = op->getParentOp(); above != kernel;
         above = above->getParentOp()) {
      if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp>(above) ||
          uniformity.hasUniformControl(above))
        continue;
      ir::emitProgramError(op)
          << "is under control flow that is not the same for all threads of "
             "the block: they may part at the '"
          << above->getName() << "' at "
          << ir::describeLocation(above->getLoc())
          << "; move it to where all threads pass";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace mgpu::kernels
