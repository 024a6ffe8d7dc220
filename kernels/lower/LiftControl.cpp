// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/LiftControl.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// MLIR's, but for loops that never end: its return from them is a function's.
class Lifting : public ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location, OpBuilder &,
                                                     Region &region) override {
    return region.getParentOp()->emitOpError(
        "has a loop that never ends, which kernels do not support");
  }
};

} // namespace

/// Whether a call of `callee` comes to `function`.
static bool reaches(func::FuncOp callee, func::FuncOp function,
                    llvm::DenseSet<Operation *> &seen) {
  if (callee == function)
    return true;
  if (!seen.insert(callee).second)
    return false;
  return callee
      .walk([&](func::CallOp call) {
        auto next = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
            call, call.getCalleeAttr());
        return next && reaches(next, function, seen) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

static LogicalResult checkRecursion(ModuleOp module) {
  WalkResult result = module.walk([](func::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    llvm::DenseSet<Operation *> seen;
    if (!callee ||
        !reaches(callee, call->getParentOfType<func::FuncOp>(), seen))
      return WalkResult::advance();
    call.emitOpError("is recursive, which kernels do not support");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult liftControl(ModuleOp module) {
  if (failed(checkRecursion(module)))
    return failure();
  SmallVector<Region *> regions; // inner ones first
  module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      if (!region.empty() && !region.hasOneBlock())
        regions.push_back(&region);
  });
  if (regions.empty())
    return success();
  module.getContext()
      ->loadDialect<scf::SCFDialect, ub::UBDialect, arith::ArithDialect>();
  IRRewriter rewriter(module.getContext());
  for (Region *region : regions) {
    (void)eraseUnreachableBlocks(rewriter, *region);
    if (region->hasOneBlock())
      continue;
    Lifting lifting;
    DominanceInfo dominance(region->getParentOp());
    if (failed(transformCFGToSCF(*region, lifting, dominance)))
      return failure();
  }
  return success();
}

} // namespace mgpu::kernels
