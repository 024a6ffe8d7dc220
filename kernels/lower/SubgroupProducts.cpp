// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/SubgroupProducts.h"

#include "mlir/Conversion/VectorToGPU/VectorToGPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Whether all lanes of a subgroup surely have the same value.
bool isUniform(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      return argument == loop.getInductionVar() &&
             isUniform(loop.getLowerBound()) &&
             isUniform(loop.getUpperBound()) && isUniform(loop.getStep());
    return isa<func::FuncOp>(owner);
  }
  Operation *op = value.getDefiningOp();
  if (isa<gpu::ThreadIdOp, gpu::LaneIdOp, gpu::GlobalIdOp>(op) ||
      op->getNumRegions() > 0 || !isPure(op))
    return false;
  return llvm::all_of(op->getOperands(), isUniform);
}

/// Whether all lanes come to `op`.
bool allCome(Operation *op) {
  for (Operation *at = op->getParentOp(); !isa<func::FuncOp>(at);
       at = at->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(at);
    if (!loop || !isUniform(loop.getInductionVar()))
      return false;
  }
  return true;
}

bool isOfAllLanes(func::FuncOp function) {
  bool any = false;
  WalkResult result = function.walk([&](Operation *op) {
    any |= isa<vector::ContractionOp>(op);
    if (!isa<vector::ContractionOp, vector::TransferReadOp,
             vector::TransferWriteOp>(op))
      return WalkResult::advance();
    const bool isSame =
        allCome(op) && llvm::all_of(op->getOperands(), [](Value operand) {
          return !operand.getType().isIndex() || isUniform(operand);
        });
    return isSame ? WalkResult::advance() : WalkResult::interrupt();
  });
  return any && !result.wasInterrupted();
}

} // namespace

LogicalResult makeSubgroupProducts(ModuleOp module, Dim3 block) {
  constexpr uint64_t lanes = 32;
  if (block.volume() % lanes != 0)
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration() || !isOfAllLanes(function))
      continue;
    RewritePatternSet patterns(module.getContext());
    populatePrepareVectorToMMAPatterns(patterns);
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return failure();
    IRRewriter rewriter(module.getContext());
    // An operation that has no form as matrices stays.
    (void)convertVectorToMMAOps(rewriter, function);
  }
  return success();
}

} // namespace mgpu::kernels
