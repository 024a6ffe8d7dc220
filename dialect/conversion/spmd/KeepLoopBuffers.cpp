// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/SavedTensors.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_KEEPLOOPBUFFERS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Stores the tensors that a trip ends with where `homes` were.
void storeIn(ValueRange homes, Operation *yield) {
  OpBuilder b(yield);
  // The contents of another home are saved before that one is overwritten.
  for (auto [home, next] : llvm::zip(homes, yield->getOpOperands()))
    if (isa<RankedTensorType>(home.getType()) && next.get() != home &&
        llvm::is_contained(homes, sourceOfViews(next.get())))
      next.set(copyOf(b, next.get()));
  for (auto [home, next] : llvm::zip(homes, yield->getOpOperands())) {
    if (!isa<RankedTensorType>(home.getType()) || next.get() == home)
      continue;
    next.set(bufferization::MaterializeInDestinationOp::create(
                 b, yield->getLoc(), next.get(), home)
                 .getResult());
  }
}

struct KeepLoopBuffers : impl::KeepLoopBuffersBase<KeepLoopBuffers> {
  using KeepLoopBuffersBase::KeepLoopBuffersBase;

  void runOnOperation() override {
    bool isChanged = false;
    getOperation().walk([&](Operation *op) {
      isChanged |= isa<scf::ForOp, scf::WhileOp>(op);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        storeIn(loop.getRegionIterArgs(), loop.getBody()->getTerminator());
      // The body's arguments are what it replaces where the condition passes
      // on what it was given.
      auto loop = dyn_cast<scf::WhileOp>(op);
      if (loop && llvm::equal(loop.getConditionOp().getArgs(),
                              loop.getBeforeArguments()))
        storeIn(loop.getAfterArguments(), loop.getYieldOp());
    });
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
