// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Long rows, where they are few, occupy a GPU only if many blocks share each.
// Blocks do not wait for each other, so such a reduction becomes two: chunks of
// the rows are reduced as rows of their own, and then what each row's chunks
// gave. docs/numerics.md states the order; it depends on the shapes alone.
#include "dialect/conversion/FewVectors.h"
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/CollapseReduction.h"
#include "dialect/conversion/linalg/Computations.h"
#include "dialect/conversion/linalg/RowChunks.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether each result has the parallel dimensions as its own, so that they can
/// be read from what the chunks gave.
bool isOfAllPoints(linalg::LinalgOp op) {
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    return map.isProjectedPermutation() &&
           map.getNumResults() == op.getNumParallelLoops();
  });
}

/// The bytes of an element of the matrix where `op` multiplies vectors with a
/// large one, whose columns are the rows; 0 of other reductions.
int64_t bytesOfMatrix(linalg::LinalgOp op, const RowForm &form) {
  int64_t elements = form.length;
  for (int64_t rows : form.rows)
    elements *= rows;
  if (form.isInner || op.getNumDpsInputs() < 2 || elements < leastMatrix)
    return 0;
  int64_t matrix = 0;
  for (OpOperand *input : op.getDpsInputOperands()) {
    const bool isMemory = isa<MemRefType>(input->get().getType());
    AffineMap map = op.getMatchingIndexingMap(input);
    const bool isVector = llvm::all_of(map.getResults(), [&](AffineExpr each) {
      auto dimension = dyn_cast<AffineDimExpr>(each);
      return dimension
                 ? dimension.getPosition() == form.along ||
                       op.getStaticLoopRanges()[dimension.getPosition()] == 1
                 : isa<AffineConstantExpr>(each);
    });
    if (!isMemory || (!isVector && matrix))
      return 0;
    if (!isVector)
      matrix = std::max<int64_t>(
          getElementTypeOrSelf(input->get()).getIntOrFloatBitWidth() / 8, 1);
  }
  return matrix;
}

/// Splits `op` and returns true if its rows are few and long, or it is a
/// product.
bool trySplit(linalg::LinalgOp op) {
  auto form = rowFormOf(op, RowKind::Reduce);
  const int64_t bytes = form ? bytesOfMatrix(op, *form) : 0;
  auto chunks = bytes  ? chunksOfProduct(*form, bytes)
                : form ? chunksOf(*form)
                       : std::nullopt;
  Value device = chunks ? visibleDevice(*form) : Value();
  if (!device || op.hasIndexSemantics() || !isOfAllPoints(op))
    return false;
  reduceByChunks(op, *form, *chunks, device);
  return true;
}

/// Splits a reduction along several dimensions that may count as one.
bool tryCollapsed(linalg::LinalgOp op) {
  linalg::GenericOp one = collapseReduction(op);
  if (!one)
    return false;
  const SmallVector<Value> views(one.getInputs());
  const bool isDone = trySplit(one);
  if (isDone)
    op->erase();
  else
    one->erase();
  for (Value each : views)
    if (auto view = each.getDefiningOp<memref::CollapseShapeOp>())
      if (view->use_empty())
        view->erase();
  return isDone;
}

struct SplitReductions : impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (Operation *each : computationsOf(getOperation(), entry))
      if (auto op = dyn_cast<linalg::LinalgOp>(each))
        isChanged |= trySplit(op) || tryCollapsed(op);
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
