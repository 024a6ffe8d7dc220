// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

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

} // namespace mgpu::conversion
