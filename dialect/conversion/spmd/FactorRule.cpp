// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/FactorRule.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

static RankedTensorType tensorType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

std::optional<Combiner> combinerOf(Operation *op, unsigned init) {
  auto linalg = cast<linalg::LinalgOp>(op);
  SmallVector<Operation *> combiners;
  if (!matchReduction(linalg.getRegionOutputArgs(), init, combiners) ||
      combiners.size() != 1)
    return std::nullopt;
  auto kind = llvm::TypeSwitch<Operation *, std::optional<ir::ReductionKind>>(
                  combiners[0])
                  .Case<arith::AddFOp, arith::AddIOp>(
                      [](auto) { return ir::ReductionKind::Sum; })
                  .Case<arith::MulFOp, arith::MulIOp>(
                      [](auto) { return ir::ReductionKind::Prod; })
                  .Case<arith::MaximumFOp, arith::MaxSIOp>(
                      [](auto) { return ir::ReductionKind::Max; })
                  .Case<arith::MinimumFOp, arith::MinSIOp>(
                      [](auto) { return ir::ReductionKind::Min; })
                  .Default(std::nullopt);
  if (!kind)
    return std::nullopt;
  return Combiner{*kind, combiners[0]};
}

/// A factor for each loop; the dimensions are cut that one loop indexes.
static FactorRule ruleOfLinalg(linalg::LinalgOp op) {
  FactorRule rule;
  for (auto [size, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    rule.add(size);
    rule.factors.back().isReduced = kind == utils::IteratorType::reduction;
  }
  if (op.getNumDpsInits() == 1 && op.getNumReductionLoops() > 0)
    if (auto combiner = combinerOf(op, 0))
      for (Factor &factor : rule.factors)
        if (factor.isReduced)
          factor.reduction = combiner->kind;
  auto list = [&](OpOperand &operand) {
    FactorTensor tensor{operand.get(), {}};
    for (AffineExpr index : op.getMatchingIndexingMap(&operand).getResults()) {
      tensor.dims.emplace_back();
      if (auto loop = dyn_cast<AffineDimExpr>(index))
        tensor.dims.back().push_back(loop.getPosition());
    }
    return tensor;
  };
  for (OpOperand &operand : op->getOpOperands())
    if (tensorType(operand.get()))
      rule.operands.push_back(list(operand));
  for (OpResult result : op->getResults()) {
    FactorTensor tensor = list(*op.getDpsInitOperand(result.getResultNumber()));
    tensor.value = result;
    rule.results.push_back(std::move(tensor));
  }
  // A loop that also indexes together with others, as those of windows do.
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr index : map.getResults())
      if (!isa<AffineDimExpr>(index))
        for (unsigned loop = 0; loop < rule.factors.size(); ++loop)
          if (index.isFunctionOfDim(loop))
            rule.factors[loop].size = 1;
  return rule;
}

FactorRule sameRule(ValueRange operands, ValueRange results) {
  FactorRule rule;
  SmallVector<SmallVector<unsigned, 1>> dims;
  Value any = operands.empty() ? results[0] : operands[0];
  for (int64_t size : tensorType(any).getShape())
    dims.push_back({rule.add(size)});
  for (Value operand : operands)
    rule.operands.push_back({operand, dims});
  for (Value result : results)
    rule.results.push_back({result, dims});
  return rule;
}

/// Each group of dimensions of `longer` is one dimension of `shorter`.
static FactorRule ruleOfReshape(Value shorter, Value longer,
                                ArrayRef<ReassociationIndices> groups,
                                bool isExpand) {
  FactorRule rule;
  FactorTensor few{shorter, {}}, many{longer, {}};
  many.dims.resize(tensorType(longer).getRank());
  for (const ReassociationIndices &group : groups) {
    few.dims.emplace_back();
    for (int64_t dim : group) {
      unsigned factor = rule.add(tensorType(longer).getDimSize(dim));
      many.dims[dim] = {factor};
      few.dims.back().push_back(factor);
    }
  }
  few.dims.resize(tensorType(shorter).getRank());
  rule.operands.push_back(isExpand ? few : many);
  rule.results.push_back(isExpand ? many : few);
  return rule;
}

/// Dimensions of the same size in both are cut alike; `dropped` are those of
/// the longer tensor that the shorter one has not.
static FactorRule ruleOfKept(Value whole, Value part,
                             const llvm::SmallBitVector &dropped, bool isInsert,
                             Value result) {
  FactorRule rule;
  FactorTensor large{whole, {}}, small{part, {}};
  for (int64_t dim = 0, at = 0; dim < tensorType(whole).getRank(); ++dim) {
    large.dims.emplace_back();
    if (dropped.test(dim))
      continue;
    small.dims.emplace_back();
    int64_t size = tensorType(whole).getDimSize(dim);
    if (tensorType(part).getDimSize(at++) != size)
      continue;
    unsigned factor = rule.add(size);
    large.dims.back() = {factor};
    small.dims.back() = {factor};
  }
  if (isInsert)
    rule.operands.push_back(small);
  rule.operands.push_back(large);
  rule.results.push_back(isInsert ? large : small);
  rule.results.back().value = result;
  return rule;
}

/// All dimensions but `axis` are cut alike.
static FactorRule ruleOfConcat(tensor::ConcatOp op) {
  FactorRule rule;
  SmallVector<SmallVector<unsigned, 1>> dims;
  for (auto [dim, size] : llvm::enumerate(op.getResultType().getShape())) {
    dims.emplace_back();
    if (dim != op.getDim())
      dims.back().push_back(rule.add(size));
  }
  for (Value operand : op.getInputs())
    rule.operands.push_back({operand, dims});
  rule.results.push_back({op.getResult(), dims});
  return rule;
}

/// All dimensions but the one that softmax normalises are cut alike.
static FactorRule ruleOfSoftmax(linalg::SoftmaxOp op) {
  FactorRule rule = sameRule({op.getInput(), op.getOutput()}, op->getResults());
  rule.factors[op.getDimension()].size = 1;
  return rule;
}

/// The rule of an elementwise operation of another dialect, such as arith's.
static FactorRule ruleOfElementwise(Operation *op) {
  SmallVector<Value> tensors = llvm::filter_to_vector(
      op->getOperands(), [](Value value) { return bool(tensorType(value)); });
  if (!OpTrait::hasElementwiseMappableTraits(op) || tensors.empty())
    return {};
  return sameRule(tensors, op->getResults());
}

FactorRule factorRuleOf(Operation *op) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<ShapedType>(type);
        tensor && !tensor.hasStaticShape())
      return {};
  return llvm::TypeSwitch<Operation *, FactorRule>(op)
      .Case([](linalg::LinalgOp each) { return ruleOfLinalg(each); })
      .Case([](tensor::ExpandShapeOp each) {
        return ruleOfReshape(each.getSrc(), each.getResult(),
                             each.getReassociationIndices(), true);
      })
      .Case([](tensor::CollapseShapeOp each) {
        return ruleOfReshape(each.getResult(), each.getSrc(),
                             each.getReassociationIndices(), false);
      })
      .Case([](tensor::ExtractSliceOp each) {
        return ruleOfKept(each.getSource(), each.getResult(),
                          each.getDroppedDims(), false, each.getResult());
      })
      .Case([](tensor::InsertSliceOp each) {
        return ruleOfKept(each.getDest(), each.getSource(),
                          each.getDroppedDims(), true, each.getResult());
      })
      .Case([](linalg::SoftmaxOp each) { return ruleOfSoftmax(each); })
      .Case([](tensor::PadOp each) {
        if (!each.getConstantPaddingValue())
          return FactorRule(); // it may depend on the place
        llvm::SmallBitVector none(each.getResultType().getRank());
        return ruleOfKept(each.getSource(), each.getResult(), none, false,
                          each.getResult());
      })
      .Case([](tensor::ConcatOp each) { return ruleOfConcat(each); })
      .Default([](Operation *each) { return ruleOfElementwise(each); });
}

} // namespace mgpu::conversion
