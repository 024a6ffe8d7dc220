// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether `op` adds to what it is given, as it would do once more for each
/// step of a sum that took it in.
bool readsStart(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic &&
         llvm::any_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
           return generic.payloadUsesValueFromOperand(&init);
         });
}

/// Whether what `operand` brings is used there alone, and both sides are plain
/// loops: upstream would turn a matrix product into loops to take in a reshape.
bool mayFold(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  auto isPlain = [](Operation *op) {
    return !isa<linalg::LinalgOp>(op) || isa<linalg::GenericOp>(op);
  };
  return producer && producer->hasOneUse() && isPlain(producer) &&
         isPlain(operand->getOwner()) &&
         !(isa<linalg::LinalgOp>(operand->getOwner()) && readsStart(producer));
}

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, mayFold);
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, mayFold);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    // What follows in the pipeline drops dead code; here each round would.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
