// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_FILLSPLATS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Where the tensor of a use is made: right before what writes it, in a loop or
/// not; else in the block of `op`.
Operation *placeOf(Operation *op, OpOperand &use) {
  auto writer = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return writer && writer.isDpsInit(&use)
             ? use.getOwner()
             : op->getBlock()->findAncestorOpInBlock(*use.getOwner());
}

/// Gives each use a tensor of its own. If one tensor stood for several,
/// bufferization would compare each read with each write, and copy what is
/// written in place.
void unshare(Operation *op) {
  SmallVector<OpOperand *> uses =
      llvm::map_to_vector(op->getUses(), [](OpOperand &use) { return &use; });
  for (OpOperand *use : llvm::drop_begin(uses)) {
    OpBuilder b(placeOf(op, *use));
    use->set(b.clone(*op)->getResult(0));
  }
  if (!uses.empty())
    op->moveBefore(placeOf(op, *uses.front()));
}

struct FillSplats : impl::FillSplatsBase<FillSplats> {
  using FillSplatsBase::FillSplatsBase;

  void runOnOperation() override {
    getOperation().walk([](arith::ConstantOp constant) {
      auto type = dyn_cast<RankedTensorType>(constant.getType());
      auto values = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!type || !values)
        return;
      // One for each use: what is written in place needs a tensor of its own.
      for (OpOperand &use : llvm::make_early_inc_range(constant->getUses())) {
        OpBuilder b(use.getOwner());
        Location loc = constant.getLoc();
        Value number = arith::ConstantOp::create(
            b, loc, values.getSplatValue<TypedAttr>());
        Value empty = tensor::EmptyOp::create(b, loc, type.getShape(),
                                              type.getElementType());
        use.set(linalg::FillOp::create(b, loc, number, empty).getResult(0));
      }
      constant.erase();
    });
    SmallVector<Operation *> fills, empties; // unshare() moves them
    getOperation().walk([&](Operation *op) {
      if (auto fill = dyn_cast<linalg::FillOp>(op);
          fill && fill.hasPureTensorSemantics())
        fills.push_back(op);
      else if (isa<tensor::EmptyOp>(op))
        empties.push_back(op);
    });
    llvm::for_each(fills, unshare);
    llvm::for_each(empties, unshare);
  }
};

} // namespace

} // namespace mgpu::conversion
