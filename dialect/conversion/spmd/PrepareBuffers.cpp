// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small passes around bufferization: each spares or checks a copy.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/SavedTensors.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SEPARATEREADS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

// So few uses are compared as fast as they are told apart.
constexpr unsigned fewUses = 16;

/// Whether nothing but the uses of `value` can write its memory: it was
/// allocated for what wrote it, one operation after the other.
bool hasOwnMemory(Value value) {
  while (auto writer = value.getDefiningOp<DestinationStyleOpInterface>()) {
    value = writer.getTiedOpOperand(cast<OpResult>(value))->get();
    if (!value.hasOneUse())
      return false;
  }
  return isa_and_present<tensor::EmptyOp>(value.getDefiningOp());
}

bool onlyReads(OpOperand &use) {
  auto reader = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return reader && reader.isDpsInput(&use);
}

void separate(OpResult value) {
  OpBuilder b(value.getOwner()->getContext());
  b.setInsertionPointAfterValue(value);
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  SmallVector<OpOperand *> uses =
      llvm::map_to_vector(value.getUses(), [](OpOperand &use) { return &use; });
  Value buffer = bufferization::ToBufferOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType()), value);
  for (OpOperand *use : uses) {
    b.setInsertionPoint(use->getOwner()); // right behind `buffer` it folds
    use->set(bufferization::ToTensorOp::create(b, loc, type, buffer,
                                               /*restrict=*/true));
  }
}

struct SeparateReads : impl::SeparateReadsBase<SeparateReads> {
  using SeparateReadsBase::SeparateReadsBase;

  void runOnOperation() override {
    SmallVector<OpResult> values;
    getOperation().walk([&](DestinationStyleOpInterface op) {
      for (OpResult value : op->getResults())
        if (isa<RankedTensorType>(value.getType()) &&
            value.hasNUsesOrMore(fewUses) && hasOwnMemory(value) &&
            llvm::all_of(value.getUses(), onlyReads))
          values.push_back(value);
    });
    if (values.empty())
      return markAllAnalysesPreserved();
    llvm::for_each(values, separate);
  }
};

} // namespace

#define GEN_PASS_DEF_FILLSPLATS
#include "dialect/conversion/Passes.h.inc"

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
  if (uses.empty())
    return;
  for (OpOperand *use : llvm::drop_begin(uses)) {
    OpBuilder b(placeOf(op, *use));
    use->set(b.clone(*op)->getResult(0));
  }
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

#define GEN_PASS_DEF_KEEPLOOPBUFFERS
#include "dialect/conversion/Passes.h.inc"

namespace {

/// Whether `value` is what a loop makes of `home` in its place, or several do
/// one after the other.
bool isAtHome(Value value, Value home) {
  while (value != home) {
    auto loop = value.getDefiningOp<LoopLikeOpInterface>();
    if (!loop || !isa<scf::ForOp, scf::WhileOp>(loop))
      return false;
    value = loop.getInits()[cast<OpResult>(value).getResultNumber()];
  }
  return true;
}

/// Stores the tensors that a trip ends with where `homes` were.
void storeIn(ValueRange homes, Operation *yield) {
  OpBuilder b(yield);
  // The contents of another home are saved before that one is overwritten.
  for (auto [home, next] : llvm::zip(homes, yield->getOpOperands()))
    if (isa<RankedTensorType>(home.getType()) && !isAtHome(next.get(), home) &&
        llvm::is_contained(homes, sourceOfViews(next.get())))
      next.set(copyOf(b, next.get()));
  llvm::DenseMap<Value, Value> stored; // what several homes get
  for (auto [home, next] : llvm::zip(homes, yield->getOpOperands())) {
    if (!isa<RankedTensorType>(home.getType()) || isAtHome(next.get(), home))
      continue;
    const Value value = next.get();
    next.set(bufferization::MaterializeInDestinationOp::create(
                 b, yield->getLoc(), stored.lookup_or(value, value), home)
                 .getResult());
    stored[value] = next.get();
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

#define GEN_PASS_DEF_CHECKBUFFERIZABLE
#include "dialect/conversion/Passes.h.inc"

namespace {

struct CheckBufferizable : impl::CheckBufferizableBase<CheckBufferizable> {
  using CheckBufferizableBase::CheckBufferizableBase;

  void runOnOperation() override {
    auto checked = getOperation().walk([](Operation *op) {
      if (!bufferization::hasTensorSemantics(op) ||
          isa<bufferization::BufferizableOpInterface>(op))
        return WalkResult::advance();
      ir::emitUnsupported(op)
          << "is not supported on tensors: it has no form on buffers; write "
             "it with linalg.generic";
      return WalkResult::interrupt();
    });
    if (checked.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
