// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/SkinnyProduct.h"

#include "dialect/conversion/linalg/PointForm.h"

namespace mgpu::conversion {

using namespace mlir;

/// The loops that index the operand, where each of its dimensions has one of
/// its own; one bit each.
static std::optional<unsigned> loopsOf(linalg::LinalgOp op,
                                       OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation() ||
      !isa<MemRefType>(operand.get().getType()))
    return std::nullopt;
  unsigned loops = 0;
  for (AffineExpr each : map.getResults())
    loops |= 1u << cast<AffineDimExpr>(each).getPosition();
  return loops;
}

std::optional<linalg::ContractionDimensions>
skinnyProductOf(linalg::LinalgOp op) {
  if (op.hasDynamicShape() || op.getNumLoops() != 3)
    return std::nullopt;
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  if (parallel.size() != 2 || reductions.size() != 1 ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return std::nullopt;
  const SmallVector<int64_t> extents = loopRangesOf(op);
  if (extents[parallel[0]] > extents[parallel[1]])
    std::swap(parallel[0], parallel[1]);
  OpOperand *left = op.getDpsInputOperand(0), *right = op.getDpsInputOperand(1),
            *sums = op.getDpsInitOperand(0);
  if (extents[parallel[0]] > mostVectorsOf(getElementTypeOrSelf(left->get())) ||
      extents[parallel[1]] * extents[reductions[0]] < leastMatrix ||
      !hasPointForm(op) || op.hasIndexSemantics() ||
      !memrefsReadInBody(op).empty())
    return std::nullopt;
  const unsigned m = 1u << parallel[0], n = 1u << parallel[1],
                 k = 1u << reductions[0];
  const auto inLeft = loopsOf(op, *left), inRight = loopsOf(op, *right);
  const Type sum = getElementTypeOrSelf(sums->get());
  if (!((inLeft == (m | k) && inRight == (n | k)) ||
        (inLeft == (n | k) && inRight == (m | k))) ||
      loopsOf(op, *sums) != (m | n) || !sum.isIntOrFloat() ||
      sum.getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  return linalg::ContractionDimensions{
      {}, {parallel[0]}, {parallel[1]}, {reductions[0]}};
}

} // namespace mgpu::conversion
