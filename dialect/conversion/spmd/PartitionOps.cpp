// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns each operation on whole tensors into one device's.
#include "dialect/conversion/spmd/Partition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

/// A tensor of `type` whose elements are all `value`: its part in `layout`.
Value Partition::filledPart(Location loc, RankedTensorType type, Value value,
                            spmd::LayoutAttr layout) {
  Value empty =
      emptyPart(b, loc, type.getShape(), type.getElementType(), layout);
  return linalg::FillOp::create(b, loc, value, empty).getResult(0);
}

/// A splat is made of the part's shape; other constants are cut.
void Partition::emitConstant(Operation *op, DenseElementsAttr value) {
  Value result = op->getResult(0);
  spmd::LayoutAttr layout = layouts.of(result);
  RankedTensorType type = partType(result, layout);
  if (value.isSplat() && type.hasStaticShape()) {
    map.map(result, arith::ConstantOp::create(b, op->getLoc(), type,
                                              value.resizeSplat(type))
                        .getResult());
    return;
  }
  if (value.isSplat()) {
    Value element = arith::ConstantOp::create(b, op->getLoc(),
                                              value.getSplatValue<TypedAttr>());
    map.map(result,
            filledPart(op->getLoc(), cast<RankedTensorType>(result.getType()),
                       element, layout));
    return;
  }
  SmallVector<Axes> uncut(value.getType().getRank());
  setPart(result, b.clone(*op)->getResult(0),
          layoutOfCuts(b.getContext(), layouts.getMesh(), uncut));
}

void Partition::emitEmpty(tensor::EmptyOp op) {
  map.map(op.getResult(),
          emptyPart(b, op.getLoc(), op.getType().getShape(),
                    op.getType().getElementType(), layouts.of(op.getResult())));
}

void Partition::emitSplat(tensor::SplatOp op) {
  map.map(op.getResult(), filledPart(op.getLoc(), op.getType(),
                                     map.lookupOrDefault(op.getInput()),
                                     layouts.of(op.getResult())));
}

/// The operands that are tensors in the layouts of the rule; others as they
/// are.
static SmallVector<Value>
partsOf(Operation *op, const FactorRule &rule,
        function_ref<Value(const FactorTensor &)> partOf,
        const IRMapping &map) {
  SmallVector<Value> operands;
  size_t next = 0;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? partOf(rule.operands[next++])
                           : map.lookupOrDefault(operand));
  return operands;
}

/// A copy of `op` on parts; its body may use whole tensors.
Operation *Partition::cloneWith(Operation *op, ValueRange operands,
                                const FactorRule &rule, ArrayRef<Cut> cuts) {
  IRMapping mine = map;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<RankedTensorType>(value.getType()))
      mine.map(value, whole(value));
  Operation *copy = b.clone(*op, mine);
  copy->setOperands(operands);
  for (auto [result, tensor] : llvm::zip(copy->getResults(), rule.results))
    result.setType(
        partType(tensor.value, layouts.layoutOf(tensor, rule, cuts)));
  return copy;
}

SmallVector<OpFoldResult>
Partition::mapped(ArrayRef<OpFoldResult> values) const {
  return llvm::map_to_vector(values, [&](OpFoldResult value) {
    auto dynamic = dyn_cast<Value>(value);
    return dynamic ? OpFoldResult(map.lookupOrDefault(dynamic)) : value;
  });
}

/// The device's entry of `values`, which has one for each part of a cut.
OpFoldResult Partition::rankValue(Location loc, const Cut &cut,
                                  ArrayRef<int64_t> values) {
  return valueOfRank(b, loc, rankAlong(b, loc, layouts.getMesh(), cut.axes),
                     values);
}

/// Where the smaller tensor's part begins in that of `large`. Only the first
/// part has what lies before.
SmallVector<OpFoldResult> Partition::offsetsIn(Location loc,
                                               const FactorTensor &large,
                                               const FactorRule &rule,
                                               ArrayRef<Cut> cuts,
                                               ArrayRef<OpFoldResult> offsets) {
  SmallVector<OpFoldResult> own = mapped(offsets);
  for (auto [dim, window] : large.windows) {
    const Cut &cut = cuts[large.dims[dim][0]];
    SmallVector<int64_t> begins(countAlong(layouts.getMesh(), cut.axes));
    begins[0] = window.offset;
    if (!cut.axes.empty())
      own[dim] = rankValue(loc, cut, begins);
  }
  return own;
}

Operation *Partition::emitSlice(tensor::ExtractSliceOp op,
                                const FactorRule &rule, ArrayRef<Cut> cuts,
                                ValueRange operands) {
  Location loc = op.getLoc();
  spmd::LayoutAttr has = layouts.layoutOf(rule.results[0], rule, cuts);
  SmallVector<OpFoldResult> part =
      sizesOfPart(b, loc, op.getType().getShape(), has);
  SmallVector<OpFoldResult> sizes(op.getSourceType().getRank(),
                                  b.getIndexAttr(1));
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (unsigned dim = 0, at = 0; dim < sizes.size(); ++dim)
    if (!dropped.test(dim))
      sizes[dim] = part[at++];
  return tensor::ExtractSliceOp::create(
      b, loc, partType(op.getResult(), has), operands[0],
      offsetsIn(loc, rule.operands[0], rule, cuts, op.getMixedOffsets()), sizes,
      mapped(op.getMixedStrides()));
}

Operation *Partition::emitInsert(tensor::InsertSliceOp op,
                                 const FactorRule &rule, ArrayRef<Cut> cuts,
                                 ValueRange operands) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> part =
      sizesOfPart(b, loc, op.getSourceType().getShape(),
                  layouts.layoutOf(rule.operands[0], rule, cuts));
  SmallVector<OpFoldResult> sizes(op.getDestType().getRank(),
                                  b.getIndexAttr(1));
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (unsigned dim = 0, at = 0; dim < sizes.size(); ++dim)
    if (!dropped.test(dim))
      sizes[dim] = part[at++];
  return tensor::InsertSliceOp::create(
      b, loc, operands[0], operands[1],
      offsetsIn(loc, rule.operands[1], rule, cuts, op.getMixedOffsets()), sizes,
      mapped(op.getMixedStrides()));
}

/// Only the first and the last part along a dimension are padded.
Operation *Partition::emitPad(tensor::PadOp op, const FactorRule &rule,
                              ArrayRef<Cut> cuts, ValueRange operands) {
  Location loc = op.getLoc();
  const FactorTensor &large = rule.results[0];
  SmallVector<OpFoldResult> low =
      offsetsIn(loc, large, rule, cuts, op.getMixedLowPad());
  SmallVector<OpFoldResult> high = mapped(op.getMixedHighPad());
  for (auto [dim, window] : large.windows) {
    const Cut &cut = cuts[large.dims[dim][0]];
    SmallVector<int64_t> ends(countAlong(layouts.getMesh(), cut.axes));
    ends.back() = op.getResultType().getDimSize(dim) -
                  op.getSourceType().getDimSize(dim) - window.offset;
    if (!cut.axes.empty())
      high[dim] = rankValue(loc, cut, ends);
  }
  Value padding = op.getConstantPaddingValue();
  Operation *inside = padding.getDefiningOp();
  padding = inside && op->isProperAncestor(inside)
                ? b.clone(*inside)->getResult(0)
                : map.lookupOrDefault(padding);
  return tensor::PadOp::create(
      b, loc, partType(op.getResult(), layouts.layoutOf(large, rule, cuts)),
      operands[0], low, high, padding, op.getNofold());
}

void Partition::emitByRule(Operation *op, const FactorRule &rule) {
  const SmallVector<Cut> cuts = takeCuts(rule);
  SmallVector<Value> operands = partsOf(
      op, rule,
      [&](const FactorTensor &tensor) {
        return part(tensor.value, layouts.layoutOf(tensor, rule, cuts));
      },
      map);
  RankedTensorType type = partType(
      rule.results[0].value, layouts.layoutOf(rule.results[0], rule, cuts));
  Location loc = op->getLoc();
  Operation *made =
      llvm::TypeSwitch<Operation *, Operation *>(op)
          .Case([&](tensor::ExpandShapeOp each) {
            return tensor::ExpandShapeOp::create(
                b, loc, type, operands[0], each.getReassociationIndices());
          })
          .Case([&](tensor::CollapseShapeOp each) {
            return tensor::CollapseShapeOp::create(
                b, loc, type, operands[0], each.getReassociationIndices());
          })
          .Case([&](tensor::ExtractSliceOp each) {
            return emitSlice(each, rule, cuts, operands);
          })
          .Case([&](tensor::InsertSliceOp each) {
            return emitInsert(each, rule, cuts, operands);
          })
          .Case([&](tensor::PadOp each) {
            return emitPad(each, rule, cuts, operands);
          })
          .Default(
              [&](Operation *) { return cloneWith(op, operands, rule, cuts); });
  for (auto [tensor, result] : llvm::zip(rule.results, made->getResults()))
    setPart(tensor.value, result, layouts.layoutOf(tensor, rule, cuts));
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

/// An index of a loop that is cut counts from where the device's part begins.
void Partition::shiftIndices(linalg::LinalgOp op, const FactorRule &rule,
                             ArrayRef<Cut> cuts) {
  Location loc = op.getLoc();
  SmallVector<linalg::IndexOp> indices(
      op->getRegion(0).getOps<linalg::IndexOp>());
  for (linalg::IndexOp index : indices) {
    const Cut &cut = cuts[index.getDim()];
    if (cut.axes.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op);
    Value rank = rankAlong(b, loc, layouts.getMesh(), cut.axes);
    Value begin;
    if (cut.bounds.empty())
      begin = beginOfPart(b, loc, rank, rule.factors[index.getDim()].size,
                          countAlong(layouts.getMesh(), cut.axes));
    else
      begin = getValueOrCreateConstantIndexOp(
          b, loc, valueOfRank(b, loc, rank, ArrayRef(cut.bounds).drop_back()));
    b.setInsertionPointAfter(index);
    auto shifted = arith::AddIOp::create(b, loc, index, begin);
    index.getResult().replaceAllUsesExcept(shifted, shifted);
  }
}

/// Whether a reduction that starts from `init` gives the reduction itself.
static bool isNeutral(Value init, const Combiner &combiner) {
  Attribute value;
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    (void)matchPattern(fill.value(), m_Constant(&value));
  else if (DenseElementsAttr elements;
           matchPattern(init, m_Constant(&elements)) && elements.isSplat())
    value = elements.getSplatValue<Attribute>();
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combiner.op);
  if (!value || !neutral)
    return false;
  if (auto number = dyn_cast<FloatAttr>(value);
      number && combiner.kind == ir::ReductionKind::Sum)
    return number.getValue().isZero(); // of either sign
  return value == Attribute(*neutral);
}

/// Each device reduces its part of a loop that is cut, from the neutral element
/// on; the devices then combine their results, and the given start with them.
void Partition::emitLinalg(linalg::LinalgOp op, const FactorRule &rule) {
  const SmallVector<Cut> cuts = takeCuts(rule);
  Partial partial;
  for (auto [factor, cut] : llvm::zip(rule.factors, cuts))
    if (factor.isReduced && !cut.axes.empty()) {
      llvm::append_range(partial.axes, cut.axes);
      partial.kind = *factor.reduction;
    }
  SmallVector<Value> operands = partsOf(
      op, rule,
      [&](const FactorTensor &tensor) {
        return part(tensor.value, layouts.layoutOf(tensor, rule, cuts));
      },
      map);
  Value start;
  std::optional<Combiner> combiner;
  if (!partial.axes.empty()) {
    combiner = combinerOf(op, 0);
    OpOperand *init = op.getDpsInitOperand(0);
    Value &local = operands[init->getOperandNumber()];
    if (!isNeutral(init->get(), *combiner)) {
      start = local;
      Value neutral = arith::ConstantOp::create(
          b, op.getLoc(), *arith::getNeutralElement(combiner->op));
      local =
          filledPart(op.getLoc(), cast<RankedTensorType>(init->get().getType()),
                     neutral, layouts.layoutOf(rule.results[0], rule, cuts));
    }
  }
  Operation *made = cloneWith(op, operands, rule, cuts);
  shiftIndices(cast<linalg::LinalgOp>(made), rule, cuts);
  for (auto [tensor, result] : llvm::zip(rule.results, made->getResults())) {
    spmd::LayoutAttr has = layouts.layoutOf(tensor, rule, cuts);
    if (!start) {
      setPart(tensor.value, result, has, partial);
      continue;
    }
    Value sum = change(tensor.value, result, has, has, partial);
    OperationState state(op.getLoc(), combiner->op->getName());
    state.addOperands({start, sum});
    state.addTypes(sum.getType());
    setPart(tensor.value, b.create(state)->getResult(0), has);
  }
}

} // namespace mgpu::conversion
