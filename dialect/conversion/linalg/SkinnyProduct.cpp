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

std::optional<SkinnyProduct> skinnyProductOf(linalg::LinalgOp op) {
  SmallVector<unsigned> parallel, reductions;
  if (op.getNumLoops() != 3 || !hasPointForm(op) || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || op.hasIndexSemantics() ||
      !memrefsReadInBody(op).empty())
    return std::nullopt;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  if (parallel.size() != 2 || reductions.size() != 1)
    return std::nullopt;
  const SmallVector<int64_t> extents = loopRangesOf(op);
  SkinnyProduct product{parallel[0], parallel[1], reductions[0], nullptr,
                        nullptr};
  if (extents[product.m] > extents[product.n])
    std::swap(product.m, product.n);
  const Type factor = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  if (extents[product.m] > mostVectorsOf(factor) ||
      extents[product.n] * extents[product.k] < leastMatrix)
    return std::nullopt;
  const unsigned m = 1u << product.m, n = 1u << product.n, k = 1u << product.k;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto loops = loopsOf(op, *input);
    if (loops == (m | k))
      product.vectors = input;
    if (loops == (n | k))
      product.matrix = input;
  }
  OpOperand &sums = *op.getDpsInitOperand(0);
  Type sum = getElementTypeOrSelf(sums.get());
  if (!product.vectors || !product.matrix || loopsOf(op, sums) != (m | n) ||
      !sum.isIntOrFloat() || sum.getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  return product;
}

} // namespace mgpu::conversion
