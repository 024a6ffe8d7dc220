// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/stablehlo/Expansion.h"
#include "dialect/stablehlo/Companions.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_EXPANDSTABLEHLO
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

Expansion findExpansion(OperationName name) {
  static const llvm::StringMap<Expansion> all = [] {
    llvm::StringMap<Expansion> map;
    for (auto some :
         {batchNormExpansions(), shapeExpansions(), libraryExpansions()})
      for (const NamedExpansion &each : some)
        map[each.name] = each.expand;
    return map;
  }();
  if (name.getStringRef().starts_with("chlo.broadcast_"))
    return expandBroadcasting;
  return all.lookup(name.getStringRef());
}

LogicalResult expandOne(Operation *op, Expansion expansion) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  FailureOr<SmallVector<Value>> made = expansion(b, op);
  if (failed(made))
    return failure();
  if (made->empty())
    return success();
  // Shardings are of the first result.
  if (Operation *last = made->front().getDefiningOp())
    for (NamedAttribute each : op->getDiscardableAttrs())
      last->setDiscardableAttr(each.getName(), each.getValue());
  op->replaceAllUsesWith(*made);
  op->erase();
  return success();
}

/// An element of a tuple that is made here is what it was made of.
bool unpackTuples(ModuleOp module) {
  SmallVector<stablehlo::TupleOp> tuples;
  module.walk([&](stablehlo::TupleOp tuple) { tuples.push_back(tuple); });
  for (stablehlo::TupleOp tuple : tuples)
    for (Operation *user : llvm::make_early_inc_range(tuple->getUsers()))
      if (auto element = dyn_cast<stablehlo::GetTupleElementOp>(user)) {
        element.getResult().replaceAllUsesWith(
            tuple.getVal()[element.getIndex()]);
        element.erase();
      }
  // Outer ones hold inner ones.
  for (stablehlo::TupleOp tuple : llvm::reverse(tuples))
    if (tuple->use_empty())
      tuple.erase();
  return !tuples.empty();
}

struct ExpandStablehlo : impl::ExpandStablehloBase<ExpandStablehlo> {
  using ExpandStablehloBase::ExpandStablehloBase;

  void runOnOperation() override {
    const bool hasTuples = unpackTuples(getOperation());
    SmallVector<std::pair<Operation *, Expansion>> found;
    getOperation().walk([&](Operation *op) {
      if (Expansion expansion = findExpansion(op->getName()))
        found.push_back({op, expansion});
    });
    if (found.empty() && !hasTuples)
      return markAllAnalysesPreserved();
    for (auto [op, expansion] : found)
      if (failed(expandOne(op, expansion)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
