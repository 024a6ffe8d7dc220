// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each operation on whole tensors becomes on one device.
#include "dialect/conversion/spmd/Partition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
                                const FactorRule &rule, ArrayRef<Axes> cuts) {
  IRMapping mine = map;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<RankedTensorType>(value.getType()))
      mine.map(value, whole(value));
  Operation *copy = b.clone(*op, mine);
  copy->setOperands(operands);
  for (auto [result, tensor] : llvm::zip(copy->getResults(), rule.results))
    result.setType(partType(tensor.value, layouts.layoutOf(tensor, cuts)));
  return copy;
}

/// Sizes of a slice: what the rule cuts is a part.
static SmallVector<OpFoldResult> cutSizes(OpBuilder &b, Location loc,
                                          ArrayRef<OpFoldResult> sizes,
                                          RankedTensorType large, Value part) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> cut(sizes);
  for (int64_t dim = 0; dim < large.getRank(); ++dim)
    if (large.getDimSize(dim) != type.getDimSize(dim))
      cut[dim] = tensor::getMixedSize(b, loc, part, dim);
  return cut;
}

void Partition::emitByRule(Operation *op, const FactorRule &rule) {
  SmallVector<Axes> cuts = layouts.cutsOf(rule);
  SmallVector<Value> operands = partsOf(
      op, rule,
      [&](const FactorTensor &tensor) {
        return part(tensor.value, layouts.layoutOf(tensor, cuts));
      },
      map);
  spmd::LayoutAttr has = layouts.layoutOf(rule.results[0], cuts);
  RankedTensorType type = partType(rule.results[0].value, has);
  auto mixed = [&](ArrayRef<OpFoldResult> values) {
    return llvm::map_to_vector(values, [&](OpFoldResult value) {
      auto dynamic = dyn_cast<Value>(value);
      return dynamic ? OpFoldResult(map.lookupOrDefault(dynamic)) : value;
    });
  };
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
            return tensor::ExtractSliceOp::create(
                b, loc, type, operands[0], mixed(each.getMixedOffsets()),
                cutSizes(b, loc, each.getMixedSizes(), each.getSourceType(),
                         operands[0]),
                each.getMixedStrides());
          })
          .Case([&](tensor::InsertSliceOp each) {
            return tensor::InsertSliceOp::create(
                b, loc, operands[0], operands[1], mixed(each.getMixedOffsets()),
                cutSizes(b, loc, each.getMixedSizes(), each.getDestType(),
                         operands[1]),
                each.getMixedStrides());
          })
          .Default(
              [&](Operation *) { return cloneWith(op, operands, rule, cuts); });
  for (auto [tensor, result] : llvm::zip(rule.results, made->getResults()))
    setPart(tensor.value, result, layouts.layoutOf(tensor, cuts));
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

/// An index of a loop that is cut counts from where the device's part begins.
void Partition::shiftIndices(linalg::LinalgOp op, const FactorRule &rule,
                             ArrayRef<Axes> cuts) {
  Location loc = op.getLoc();
  SmallVector<linalg::IndexOp> indices(
      op->getRegion(0).getOps<linalg::IndexOp>());
  for (linalg::IndexOp index : indices) {
    const Axes &axes = cuts[index.getDim()];
    if (axes.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op);
    Value begin = beginOfPart(
        b, loc, rankAlong(b, loc, layouts.getMesh(), axes),
        rule.factors[index.getDim()].size, countAlong(layouts.getMesh(), axes));
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
  SmallVector<Axes> cuts = layouts.cutsOf(rule);
  Partial partial;
  for (auto [factor, axes] : llvm::zip(rule.factors, cuts))
    if (factor.isReduced && !axes.empty()) {
      llvm::append_range(partial.axes, axes);
      partial.kind = *factor.reduction;
    }
  SmallVector<Value> operands = partsOf(
      op, rule,
      [&](const FactorTensor &tensor) {
        return part(tensor.value, layouts.layoutOf(tensor, cuts));
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
                     neutral, layouts.layoutOf(rule.results[0], cuts));
    }
  }
  Operation *made = cloneWith(op, operands, rule, cuts);
  shiftIndices(cast<linalg::LinalgOp>(made), rule, cuts);
  for (auto [tensor, result] : llvm::zip(rule.results, made->getResults())) {
    spmd::LayoutAttr has = layouts.layoutOf(tensor, cuts);
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
