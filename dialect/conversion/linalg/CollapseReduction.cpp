// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/CollapseReduction.h"

#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/ProductSteps.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// Dimensions that follow each other, of which one stays.
struct Sequence {
  unsigned first, count;
  bool isLater(unsigned dim) const {
    return dim > first && dim < first + count;
  }
};

/// The map without the later dimensions, in its domain and its results.
AffineMap collapsed(AffineMap map, Sequence sequence) {
  SmallVector<AffineExpr> results;
  for (AffineExpr each : map.getResults()) {
    const unsigned dim = cast<AffineDimExpr>(each).getPosition();
    if (!sequence.isLater(dim))
      results.push_back(getAffineDimExpr(
          dim > sequence.first ? dim - sequence.count + 1 : dim,
          map.getContext()));
  }
  return AffineMap::get(map.getNumDims() - sequence.count + 1, 0, results,
                        map.getContext());
}

/// Which dimensions of an operand its view joins.
SmallVector<ReassociationIndices> groupsOf(AffineMap map, Sequence sequence) {
  SmallVector<ReassociationIndices> groups;
  for (auto [k, each] : llvm::enumerate(map.getResults())) {
    if (!sequence.isLater(cast<AffineDimExpr>(each).getPosition()))
      groups.emplace_back();
    groups.back().push_back(int64_t(k));
  }
  return groups;
}

} // namespace

linalg::GenericOp collapseReduction(linalg::LinalgOp op) {
  SmallVector<unsigned> dims;
  op.getReductionDims(dims);
  if (dims.size() < 2 || dims.back() - dims.front() + 1 != dims.size() ||
      !hasPointForm(op) || op.hasIndexSemantics())
    return {};
  const Sequence sequence{dims.front(), unsigned(dims.size())};
  const ReassociationIndices indices(dims.begin(), dims.end());
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!map.isProjectedPermutation() ||
        !linalg::isDimSequencePreserved(map, indices) ||
        (type && !memref::CollapseShapeOp::isGuaranteedCollapsible(
                     type, groupsOf(map, sequence))))
      return {};
  }
  markProduct(op);
  OpBuilder b(op);
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray())
    maps.push_back(collapsed(map, sequence));
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto groups = groupsOf(op.getMatchingIndexingMap(input), sequence);
    Value value = input->get();
    auto type = dyn_cast<MemRefType>(value.getType());
    if (type && int64_t(groups.size()) < type.getRank()) {
      b.setInsertionPointAfterValue(value);
      value = memref::CollapseShapeOp::create(b, op.getLoc(), value, groups);
    }
    inputs.push_back(value);
  }
  b.setInsertionPoint(op);
  auto iterators = op.getIteratorTypesArray();
  iterators.erase(iterators.begin() + sequence.first + 1,
                  iterators.begin() + sequence.first + sequence.count);
  auto made = linalg::GenericOp::create(b, op.getLoc(), inputs,
                                        SmallVector<Value>(op.getDpsInits()),
                                        maps, iterators);
  IRMapping map;
  op->getRegion(0).cloneInto(&made.getRegion(), map);
  auto name = op->getAttrOfType<StringAttr>("mgpu.name");
  made->setAttr("mgpu.name",
                name ? name : b.getStringAttr(op->getName().stripDialect()));
  return made;
}

} // namespace mgpu::conversion
