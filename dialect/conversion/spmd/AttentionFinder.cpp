// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/AttentionFinder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

using namespace mlir;

bool isNarrowFloat(Type type) {
  return getElementTypeOrSelf(type).isF32() ||
         getElementTypeOrSelf(type).isF16() ||
         getElementTypeOrSelf(type).isBF16();
}

bool onlyConverts(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.getNumReductionLoops() == 0 &&
         structured.getNumDpsInputs() == 1 &&
         !llvm::hasSingleElement(*structured.getBlock()) &&
         llvm::all_of(structured.getBlock()->without_terminator(),
                      llvm::IsaPred<arith::ExtFOp, arith::TruncFOp>);
}

namespace {

/// The number without conversions between floats.
Value unconverted(Value value) {
  while (auto op = value.getDefiningOp())
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      value = op->getOperand(0);
    else
      break;
  return value;
}

/// One result that is combined with a value of the body over some loops.
template <typename... Combiners>
Value reducedBy(linalg::LinalgOp op) {
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() + op.getNumReductionLoops() != op.getNumLoops())
    return {};
  Operation *last =
      op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!last || !isa<Combiners...>(last))
    return {};
  BlockArgument output = op.getRegionOutputArgs()[0];
  Value x = last->getOperand(0), y = last->getOperand(1);
  if (!output.hasOneUse() || (x != output && y != output) || x == y)
    return {};
  return x == output ? y : x;
}

} // namespace

void AttentionFinder::restart() {
  elements.restart();
  known.clear();
  batch.clear();
  query = key = inHead = inValue = std::nullopt;
  scores = {};
}

/// The element as it is computed, without conversions between floats.
Element AttentionFinder::plain(Element element) {
  element = elements.computed(element);
  while (!element.isOfTensor() && unconverted(element.value) != element.value) {
    element.value = unconverted(element.value);
    element = elements.computed(element);
  }
  return element;
}

bool AttentionFinder::beginsWith(linalg::LinalgOp op,
                                 bool (*isNeutral)(const APFloat &)) {
  OpOperand *init = op.getDpsInitOperand(0);
  Element first{init->get(), {}};
  if (first.isOfTensor())
    first.at.resize(
        size_t(cast<RankedTensorType>(init->get().getType()).getRank()),
        Index{});
  const std::optional<APFloat> number =
      constantOf(elements.computed(first).value);
  return number && isNeutral(*number);
}

std::optional<Factors> AttentionFinder::productOf(linalg::LinalgOp op) {
  Value term = reducedBy<arith::AddFOp>(op);
  auto product = term ? term.getDefiningOp<arith::MulFOp>() : nullptr;
  if (!product || op.getNumDpsInputs() != 2 || !isNarrowFloat(term.getType()) ||
      !isNarrowFloat(op.getDpsInputOperand(0)->get().getType()) ||
      !isNarrowFloat(op.getDpsInputOperand(1)->get().getType()))
    return std::nullopt;
  auto x = dyn_cast<BlockArgument>(unconverted(product.getLhs())),
       y = dyn_cast<BlockArgument>(unconverted(product.getRhs()));
  if (!x || !y || x.getOwner() != op.getBlock() ||
      y.getOwner() != op.getBlock() || x.getArgNumber() + y.getArgNumber() != 1)
    return std::nullopt;
  if (!beginsWith(op, [](const APFloat &x) { return x.isZero(); }))
    return std::nullopt;
  return Factors{op.getDpsInputOperand(0), op.getDpsInputOperand(1)};
}

/// Loops of reductions of size 1 count nothing; the other one is `over`, or a
/// new loop.
static bool placeReduction(Elements &elements, linalg::LinalgOp op,
                           SmallVector<Index> &at, std::optional<Index> over,
                           Index *made) {
  const SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  bool isPlaced = false;
  for (unsigned loop : reductions) {
    if (ranges[loop] == 1)
      continue;
    if (isPlaced || ShapedType::isDynamic(ranges[loop]))
      return false;
    isPlaced = true;
    at[loop] = over ? *over : *made = elements.loop(ranges[loop]);
  }
  return isPlaced;
}

template <typename... Combiners>
std::optional<Element>
AttentionFinder::reduced(Element element, bool (*isNeutral)(const APFloat &)) {
  element = plain(element);
  if (!element.isOfTensor() || isUsed(element, *key))
    return std::nullopt;
  auto op = element.value.getDefiningOp<linalg::LinalgOp>();
  Value term = reducedBy<Combiners...>(op);
  if (!term || !beginsWith(op, isNeutral))
    return std::nullopt;
  auto at = elements.loopsAt(op, element);
  if (!at || !placeReduction(elements, op, *at, keys, nullptr))
    return std::nullopt;
  // All of the keys, from the first one on.
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  int64_t count = 1;
  for (unsigned loop : reductions)
    count *= op.getStaticLoopRanges()[loop];
  return count == elements.loops[*key]
             ? std::optional(elements.computed({term, *at}))
             : std::nullopt;
}

bool AttentionFinder::findSoftmax(const Element &power,
                                  const std::optional<Element> &sum) {
  if (!power.value.getDefiningOp<math::ExpOp>() || !sum)
    return false;
  auto summed =
      reduced<arith::AddFOp>(*sum, [](const APFloat &x) { return x.isZero(); });
  if (!summed || !elements.areSame(plain(*summed), power))
    return false;
  Element below = elements.operand(power, 0);
  below = plain(below);
  if (!below.value.getDefiningOp<arith::SubFOp>())
    return false;
  score = elements.operand(below, 0);
  Element most = plain(elements.operand(below, 1));
  auto isLowest = [](const APFloat &x) {
    return x.isNegative() && (x.isInfinity() || x.isLargest());
  };
  for (unsigned side : {0, 1}) // the larger of -inf and that, as JAX has it
    if (Operation *op = most.value.getDefiningOp();
        isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(op) &&
        !most.isOfTensor()) {
      auto number = constantOf(elements.operand(most, side).value);
      if (number && isLowest(*number))
        most = plain(elements.operand(most, 1 - side));
    }
  auto largest = reduced<arith::MaximumFOp, arith::MaxNumFOp>(most, isLowest);
  return largest && elements.areSame(plain(*largest), plain(score));
}

/// The weights of V's rows, which are divided by `sum` later where that is
/// given.
bool AttentionFinder::findWeights(const Element &weights,
                                  std::optional<Element> sum) {
  Element of = plain(weights);
  if (auto softmax = of.value.getDefiningOp<linalg::SoftmaxOp>()) {
    Index along = of.at[softmax.getDimension()];
    auto type = dyn_cast<RankedTensorType>(softmax.getInput().getType());
    if (sum || !type || along != keys ||
        type.getDimSize(int64_t(softmax.getDimension())) !=
            elements.loops[*key])
      return false;
    for (auto [dim, index] : llvm::enumerate(of.at))
      if (dim != softmax.getDimension() && Elements::follows(index, *key))
        return false;
    score = elements.computed({softmax.getInput(), of.at});
    return true;
  }
  if (of.isOfTensor())
    return false;
  if (!of.value.getDefiningOp<arith::DivFOp>())
    return findSoftmax(of, sum);
  return !sum &&
         findSoftmax(plain(elements.operand(of, 0)), elements.operand(of, 1));
}

bool AttentionFinder::find() {
  auto type = dyn_cast<RankedTensorType>(root->getResult(0).getType());
  if (!type || !type.hasStaticShape() || !isNarrowFloat(type) ||
      type.getNumElements() == 0)
    return false;
  result = {root->getResult(0), {}};
  for (int64_t size : type.getShape())
    result.at.push_back(elements.loop(size));
  std::optional<Element> sum;
  Element from = result;
  if (root.getNumReductionLoops() == 0) {
    from = plain(result);
    auto quotient = from.value.getDefiningOp<arith::DivFOp>();
    if (!onlyConverts(root) && (!quotient || quotient->getParentOp() != root))
      return false;
    if (quotient) {
      sum = elements.operand(from, 1);
      from = plain(elements.operand(from, 0));
    }
  }
  product = from.value.getDefiningOp<linalg::LinalgOp>();
  auto factors =
      from.isOfTensor() && product ? productOf(product) : std::nullopt;
  auto at = factors ? elements.loopsAt(product, from) : std::nullopt;
  const size_t before = elements.loops.size();
  if (!at || !placeReduction(elements, product, *at, std::nullopt, &keys) ||
      elements.loops.size() != before + 1 || before + 1 >= mostLoops)
    return false;
  key = before;
  for (auto [one, other] : {std::pair(factors->first, factors->second),
                            std::pair(factors->second, factors->first)}) {
    auto p = Elements::read(product, *one, *at),
         values = Elements::read(product, *other, *at);
    if (!p || !values || needsSplit())
      return false;
    if (!findWeights(*p, sum))
      continue;
    weights = one->get();
    v = elements.moved(*values);
    return findProduct() && !needsSplit() && sortLoops() && isClosed();
  }
  return false;
}

/// The first product of two factors that the tensor is computed from, element
/// by element.
linalg::LinalgOp AttentionFinder::productBelow(Value tensor) {
  constexpr size_t most = 128; // a mask may come from all of a program
  llvm::SetVector<Value> all;
  all.insert(tensor);
  for (size_t at = 0; at < all.size() && at < most; ++at) {
    Operation *op = all[at].getDefiningOp();
    if (!op)
      continue;
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (structured && structured.getNumReductionLoops() != 0) {
      if (productOf(structured))
        return structured;
      continue;
    }
    if (structured || isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      all.insert(op->operand_begin(), op->operand_end());
  }
  return {};
}

bool AttentionFinder::depends(Value tensor) {
  if (auto [at, isNew] = known.try_emplace(tensor, false); !isNew)
    return at->second;
  Operation *op = tensor.getDefiningOp();
  constexpr size_t most = 512;
  if (!op || known.size() > most)
    return false;
  bool found = op == scores.getOperation();
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!found && op == product.getOperation())
    found = depends(weights);
  else if (!found && (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                          linalg::SoftmaxOp>(op) ||
                      (structured && !productOf(structured))))
    for (Value operand : op->getOperands())
      found |= isa<RankedTensorType>(operand.getType()) && depends(operand);
  return known[tensor] = found;
}

bool AttentionFinder::findProduct() {
  // The tensor whose element the score is, or is made of.
  Value tensor = score.value;
  if (!score.isOfTensor()) {
    auto in = tensor.getDefiningOp()
                  ? tensor.getDefiningOp()->getParentOfType<linalg::LinalgOp>()
                  : linalg::LinalgOp();
    if (!in || in.getNumReductionLoops() != 0)
      return false;
    tensor = in->getResult(0);
  }
  scores = productBelow(tensor);
  if (!scores)
    return false;
  // Its loops are those of the element that the score reads.
  Element product{scores->getResult(0), {}};
  SmallVector<Element> open{score};
  SmallVector<Element> seen;
  while (!open.empty()) {
    Element each = elements.computed(open.pop_back_val());
    if (each.value == product.value) {
      if (!product.at.empty() && product.at != each.at)
        return false; // read at two places
      product.at = each.at;
      continue;
    }
    Operation *op = each.value.getDefiningOp();
    if (each.isOfTensor() || !op || isa<linalg::IndexOp>(op))
      continue;
    constexpr size_t most = 256;
    if (llvm::is_contained(seen, each))
      continue;
    if (seen.size() > most)
      return false;
    seen.push_back(each);
    for (Value operand : op->getOperands())
      if (!isa<ShapedType>(operand.getType()))
        open.push_back({operand, each.at});
  }
  auto factors = productOf(scores);
  if (product.at.empty() || !factors)
    return false;
  auto at = elements.loopsAt(scores, product);
  const size_t before = elements.loops.size();
  if (!at || !placeReduction(elements, scores, *at, std::nullopt, &head) ||
      elements.loops.size() != before + 1 || before + 1 >= mostLoops)
    return false;
  inHead = before;
  auto first = Elements::read(scores, *factors->first, *at),
       second = Elements::read(scores, *factors->second, *at);
  if (!first || !second)
    return false;
  q = elements.moved(*first);
  k = elements.moved(*second);
  if (isUsed(q, *key))
    std::swap(q, k);
  return isUsed(k, *key) && !isUsed(q, *key) && isUsed(q, *inHead) &&
         isUsed(k, *inHead);
}

/// Few queries, as in decoding, are faster by the operations: those share out
/// the keys, which one launch goes through query after query.
bool AttentionFinder::isWorthwhile() const {
  constexpr int64_t fewKeys = 1024, atOnce = 64, enough = 64;
  const int64_t queries = elements.loops[*query];
  int64_t parts = (queries + atOnce - 1) / atOnce;
  for (size_t loop : batch)
    parts *= elements.loops[loop];
  return queries > 1 && (elements.loops[*key] <= fewKeys || parts >= enough);
}

/// Sorts the loops by what follows them.
bool AttentionFinder::sortLoops() {
  if (!isUsed(v, *key) || isUsed(v, *inHead) || isUsed(result, *key))
    return false;
  SmallVector<size_t> others;
  for (size_t loop = 0; loop < elements.loops.size(); ++loop) {
    if (loop == *key || loop == *inHead)
      continue;
    const bool inQ = isUsed(q, loop), inK = isUsed(k, loop);
    if (!inQ && !inK && isUsed(v, loop)) {
      // The scores must not follow it; the body would not find its index.
      if (inValue)
        return false;
      inValue = loop;
      continue;
    }
    others.push_back(loop);
    if (inQ && !inK && !isUsed(v, loop) &&
        (!query || elements.loops[loop] >= elements.loops[*query]))
      query = loop;
  }
  llvm::copy_if(others, std::back_inserter(batch),
                [&](size_t loop) { return loop != query; });
  return query && isWorthwhile();
}

/// Whether nobody else reads what is computed between Q K^T and the result.
bool AttentionFinder::isClosed() {
  known.clear();
  if (!depends(root->getResult(0)))
    return false;
  for (auto [tensor, isOnTheWay] : known)
    if (isOnTheWay && tensor != root->getResult(0))
      for (Operation *user : tensor.getUsers())
        if (user->getNumResults() == 0 || !known.lookup(user->getResult(0)))
          return false;
  return true;
}

} // namespace mgpu::conversion
