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

/// The loops that an index is a sum of, with their factors; empty where it is
/// something else.
static SmallVector<std::pair<unsigned, int64_t>> termsOf(AffineExpr index) {
  if (auto loop = dyn_cast<AffineDimExpr>(index))
    return {{loop.getPosition(), 1}};
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return {};
  auto terms = termsOf(binary.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (index.getKind() == AffineExprKind::Mul && factor &&
      factor.getValue() > 0) {
    for (auto &term : terms)
      term.second *= factor.getValue();
    return terms;
  }
  auto more = termsOf(binary.getRHS());
  if (index.getKind() != AffineExprKind::Add || terms.empty() || more.empty())
    return {};
  llvm::append_range(terms, more);
  return terms;
}

/// In an index of several loops, as `oh + kh` of a convolution, the longest
/// loop can be cut, and a part of it reads some elements more. Other loops of
/// it are `uncut`.
static std::optional<std::pair<unsigned, Window>>
windowOf(AffineExpr index, ArrayRef<int64_t> sizes,
         llvm::SmallBitVector &uncut) {
  auto terms = termsOf(index);
  std::pair<unsigned, int64_t> base{0, 0};
  for (auto term : terms)
    if (base.second == 0 || sizes[term.first] > sizes[base.first])
      base = term;
  Window window{0, base.second, 0};
  for (auto [loop, factor] : terms) {
    if (loop != base.first)
      window.reach += factor * (sizes[loop] - 1);
    else if (factor != base.second) // it stands there twice
      uncut.set(loop);
  }
  for (unsigned loop = 0; loop < sizes.size(); ++loop)
    if (index.isFunctionOfDim(loop) && (terms.empty() || loop != base.first))
      uncut.set(loop);
  if (terms.empty())
    return std::nullopt;
  return std::pair(base.first, window);
}

/// A factor for each loop.
static FactorRule ruleOfLinalg(linalg::LinalgOp op) {
  FactorRule rule;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [size, kind] : llvm::zip(sizes, op.getIteratorTypesArray())) {
    rule.add(size);
    rule.factors.back().isReduced = kind == utils::IteratorType::reduction;
  }
  if (op.getNumDpsInits() == 1 && op.getNumReductionLoops() > 0)
    if (auto combiner = combinerOf(op, 0))
      for (Factor &factor : rule.factors)
        if (factor.isReduced)
          factor.reduction = combiner->kind;
  llvm::SmallBitVector uncut(sizes.size());
  auto list = [&](OpOperand &operand) {
    FactorTensor tensor{operand.get(), {}};
    for (AffineExpr index : op.getMatchingIndexingMap(&operand).getResults()) {
      tensor.dims.emplace_back();
      if (auto loop = dyn_cast<AffineDimExpr>(index)) {
        tensor.dims.back().push_back(loop.getPosition());
      } else if (auto window = windowOf(index, sizes, uncut)) {
        tensor.windows.push_back({tensor.dims.size() - 1, window->second});
        tensor.dims.back().push_back(window->first);
      }
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
  for (unsigned loop : uncut.set_bits())
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

/// `part` are elements of `whole`, from `offsets` on; `dropped` are dimensions
/// of the longer tensor that the shorter one has not. A dimension of which less
/// than half is left is not cut.
static FactorRule ruleOfKept(Value whole, Value part,
                             const llvm::SmallBitVector &dropped, bool isInsert,
                             Value result, ArrayRef<int64_t> offsets,
                             ArrayRef<int64_t> strides = {}) {
  FactorRule rule;
  FactorTensor large{whole, {}}, small{part, {}};
  for (unsigned dim = 0, at = 0; dim < tensorType(whole).getRank(); ++dim) {
    large.dims.emplace_back();
    if (dropped.test(dim))
      continue;
    small.dims.emplace_back();
    int64_t size = tensorType(whole).getDimSize(dim);
    int64_t kept = tensorType(part).getDimSize(at++);
    Window window{offsets[dim], strides.empty() ? 1 : strides[dim], 0};
    if (kept != size && (kept > size || ShapedType::isDynamic(window.offset) ||
                         ShapedType::isDynamic(window.stride) ||
                         2 * kept * window.stride < size))
      continue;
    unsigned factor = rule.add(kept);
    large.dims.back() = {factor};
    small.dims.back() = {factor};
    if (kept != size)
      large.windows.push_back({dim, window});
  }
  if (isInsert)
    rule.operands.push_back(small);
  rule.operands.push_back(large);
  rule.results.push_back(isInsert ? large : small);
  rule.results.back().value = result;
  return rule;
}

/// The result has more elements than the source, whose part it keeps.
static FactorRule ruleOfPad(tensor::PadOp op) {
  if (!op.getConstantPaddingValue())
    return {}; // it may depend on the place
  llvm::SmallBitVector none(op.getResultType().getRank());
  FactorRule rule = ruleOfKept(op.getResult(), op.getSource(), none, true,
                               op.getResult(), op.getStaticLow());
  rule.operands.pop_back();
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

/// Dimensions of the indices, and those of the source that are taken whole.
static FactorRule ruleOfGather(tensor::GatherOp op) {
  FactorRule rule;
  FactorTensor source{op.getSource(), {}}, indices{op.getIndices(), {}};
  FactorTensor result{op.getResult(), {}};
  for (int64_t size : op.getIndicesType().getShape().drop_back()) {
    indices.dims.push_back({rule.add(size)});
    result.dims.push_back(indices.dims.back());
  }
  indices.dims.emplace_back();
  bool keeps = op.getResultType().getRank() ==
               op.getIndicesType().getRank() - 1 + op.getSourceType().getRank();
  for (auto [dim, size] : llvm::enumerate(op.getSourceType().getShape())) {
    source.dims.emplace_back();
    if (!llvm::is_contained(op.getGatherDims(), int64_t(dim))) {
      source.dims.back().push_back(rule.add(size));
      result.dims.push_back(source.dims.back());
    } else if (keeps) {
      result.dims.emplace_back();
    }
  }
  rule.operands = {source, indices};
  rule.results = {result};
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
                          each.getDroppedDims(), false, each.getResult(),
                          each.getStaticOffsets(), each.getStaticStrides());
      })
      .Case([](tensor::InsertSliceOp each) {
        return ruleOfKept(each.getDest(), each.getSource(),
                          each.getDroppedDims(), true, each.getResult(),
                          each.getStaticOffsets(), each.getStaticStrides());
      })
      .Case([](linalg::SoftmaxOp each) { return ruleOfSoftmax(each); })
      .Case([](tensor::PadOp each) { return ruleOfPad(each); })
      .Case([](tensor::ConcatOp each) { return ruleOfConcat(each); })
      .Case([](tensor::GatherOp each) { return ruleOfGather(each); })
      .Default([](Operation *each) { return ruleOfElementwise(each); });
}

} // namespace mgpu::conversion
