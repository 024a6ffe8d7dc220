// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_DECOMPOSETENSORS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether elementwise fusion should look into `op`. What has a text of its own
/// for GPUs, as matrix products do, keeps its name.
bool isPlain(linalg::LinalgOp op) {
  return !isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp>(op) &&
         (isa<linalg::ReduceOp, linalg::BroadcastOp, linalg::TransposeOp>(op) ||
          linalg::isElementwise(op));
}

/// What elementwise fusion folds: a fill.
void fillSplat(tensor::SplatOp op) {
  OpBuilder b(op);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), op.getType().getShape(),
                                        op.getType().getElementType());
  op.getAggregate().replaceAllUsesWith(
      linalg::FillOp::create(b, op.getLoc(), op.getInput(), empty)
          .getResult(0));
  op.erase();
}

struct DecomposeTensors : impl::DecomposeTensorsBase<DecomposeTensors> {
  using DecomposeTensorsBase::DecomposeTensorsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    tensor::populateFoldTensorSubsetOpPatterns(patterns);
    // What follows in the pipeline drops dead code; here each round would.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    getOperation().walk(fillSplat);
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isPlain(op))
        return;
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    });
  }
};

} // namespace

} // namespace mgpu::conversion
