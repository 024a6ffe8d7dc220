// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Elements.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace mgpu::conversion {

using namespace mlir;

void Elements::restart() {
  loops.clear();
  origins.clear();
  made = 0;
  isSplit = false;
}

Index Elements::loop(int64_t size) {
  Index index{};
  const size_t number = made++;
  SmallVector<int64_t> &sizes = pieces[number];
  if (sizes.empty())
    sizes.push_back(size);
  int64_t factor = 1;
  for (size_t k = sizes.size(); k-- > 0; factor *= sizes[k]) {
    if (sizes[k] == 1)
      continue;
    if (loops.size() < mostLoops)
      index[loops.size()] = factor;
    loops.push_back(sizes[k]);
    origins.push_back({number, k});
  }
  return index;
}

bool Elements::follows(const Element &element, size_t k) {
  return llvm::any_of(element.at,
                      [&](const Index &index) { return follows(index, k); });
}

static Index sum(const Index &x, const Index &y, int64_t factor = 1) {
  Index all = x;
  for (size_t k = 0; k < all.size(); ++k)
    all[k] += factor * y[k];
  return all;
}

/// index / below mod size. Asks for a split where a loop counts across digits.
std::optional<Index> Elements::digit(Index index, int64_t below, int64_t size) {
  // The part that is a multiple of `unit`, divided by it; the rest is smaller.
  auto cut = [&](const Index &of, int64_t unit, Index &rest) {
    Index whole{};
    int64_t most = of.back() % unit;
    bool fits = of.back() >= 0;
    rest = {};
    rest.back() = of.back() % unit;
    whole.back() = of.back() / unit;
    for (size_t k = 0; k < loops.size() && k < mostLoops; ++k) {
      if (of[k] % unit == 0) {
        whole[k] = of[k] / unit;
        continue;
      }
      rest[k] = of[k];
      most += of[k] * (loops[k] - 1);
      fits &= of[k] > 0;
    }
    if (fits && most < unit)
      return std::optional(whole);
    for (size_t k = 0; k < loops.size() && k < mostLoops && !isSplit; ++k) {
      const int64_t inner =
          rest[k] > 0 && unit % rest[k] == 0 ? unit / rest[k] : 0;
      if (inner <= 1 || inner >= loops[k] || loops[k] % inner != 0)
        continue;
      auto [number, piece] = origins[k];
      SmallVector<int64_t> &sizes = pieces[number];
      sizes[piece] = inner;
      sizes.insert(sizes.begin() + piece, loops[k] / inner);
      isSplit = true;
    }
    return std::optional<Index>();
  };
  Index rest{};
  const std::optional<Index> shifted = cut(index, below, rest);
  if (!shifted || !cut(*shifted, size, rest))
    return std::nullopt;
  return rest;
}

std::optional<Element> Elements::read(linalg::LinalgOp op, OpOperand &operand,
                                      ArrayRef<Index> at) {
  Element element{operand.get(), {}};
  if (!element.isOfTensor())
    return element;
  for (AffineExpr expression : op.getMatchingIndexingMap(&operand).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
      element.at.push_back(at[dim.getPosition()]);
    } else if (auto number = dyn_cast<AffineConstantExpr>(expression)) {
      Index index{};
      index.back() = number.getValue();
      element.at.push_back(index);
    } else {
      return std::nullopt;
    }
  return element;
}

std::optional<SmallVector<Index>> Elements::loopsAt(linalg::LinalgOp op,
                                                    const Element &result) {
  AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(result.value));
  if (!map.isProjectedPermutation())
    return std::nullopt;
  SmallVector<Index> at(op.getNumLoops(), Index{});
  for (auto [expression, index] : llvm::zip_equal(map.getResults(), result.at))
    at[cast<AffineDimExpr>(expression).getPosition()] = index;
  return at;
}

/// One step towards what computes the element; none where it is that.
std::optional<Element> Elements::below(const Element &element, bool movesOnly) {
  if (auto argument = dyn_cast<BlockArgument>(element.value)) {
    auto op =
        dyn_cast_or_null<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    if (!op || element.isOfTensor())
      return std::nullopt;
    return read(op, op->getOpOperand(argument.getArgNumber()), element.at);
  }
  Operation *op = element.value.getDefiningOp();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    Element from{expand.getSrc(), {}};
    ArrayRef<int64_t> sizes = expand.getResultType().getShape();
    if (!expand.getResultType().hasStaticShape())
      return std::nullopt;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      Index index{};
      for (int64_t dim : group) {
        Index scaled{};
        scaled = sum(scaled, index, sizes[size_t(dim)]);
        index = sum(scaled, element.at[size_t(dim)]);
      }
      from.at.push_back(index);
    }
    return from;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    Element from{collapse.getSrc(), {}};
    ArrayRef<int64_t> sizes = collapse.getSrcType().getShape();
    if (!collapse.getSrcType().hasStaticShape())
      return std::nullopt;
    for (auto [index, group] :
         llvm::zip_equal(element.at, collapse.getReassociationIndices())) {
      int64_t inner = 1;
      for (int64_t dim : group)
        inner *= sizes[size_t(dim)];
      for (int64_t dim : group) {
        inner /= std::max<int64_t>(sizes[size_t(dim)], 1);
        auto at =
            inner == 0 ? std::nullopt : digit(index, inner, sizes[size_t(dim)]);
        if (!at)
          return std::nullopt;
        from.at.push_back(*at);
      }
    }
    from.at.resize(sizes.size(), Index{}); // to a single number, of no group
    return from;
  }
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || !structured.hasPureTensorSemantics() ||
      structured.getNumReductionLoops() != 0 || !element.isOfTensor())
    return std::nullopt;
  auto at = loopsAt(structured, element);
  if (!at)
    return std::nullopt;
  Value given = structured.getBlock()->getTerminator()->getOperand(
      cast<OpResult>(element.value).getResultNumber());
  Element next{given, *at};
  auto argument = dyn_cast<BlockArgument>(given);
  const bool isMove = argument && argument.getOwner() == structured.getBlock();
  if (!isMove)
    return movesOnly ? std::nullopt : std::optional(next);
  auto from =
      read(structured, structured->getOpOperand(argument.getArgNumber()), *at);
  return movesOnly && from && !from->isOfTensor() ? std::nullopt : from;
}

Element Elements::moved(Element element) {
  while (auto next = element.value.getType().isIntOrIndexOrFloat()
                         ? std::nullopt
                         : below(element, /*movesOnly=*/true))
    element = *next;
  return element;
}

Element Elements::computed(Element element) {
  while (auto next = below(element, /*movesOnly=*/false))
    element = *next;
  return element;
}

Element Elements::operand(const Element &of, unsigned k) {
  return computed({of.value.getDefiningOp()->getOperand(k), of.at});
}

bool Elements::areSame(Element one, Element other, unsigned depth) {
  constexpr unsigned most = 12;
  one = computed(one);
  other = computed(other);
  if (one == other)
    return true;
  Operation *op = one.value.getDefiningOp(),
            *twin = other.value.getDefiningOp();
  if (depth > most || !op || !twin || op->getName() != twin->getName() ||
      op->getAttrDictionary() != twin->getAttrDictionary() ||
      op->getNumOperands() != twin->getNumOperands() ||
      op->getNumRegions() != 0 || isa<linalg::IndexOp>(op) ||
      one.isOfTensor() || !isMemoryEffectFree(op))
    return false;
  for (unsigned k = 0; k < op->getNumOperands(); ++k)
    if (isa<ShapedType>(op->getOperand(k).getType()) // of tensor.extract
            ? op->getOperand(k) != twin->getOperand(k)
            : !areSame({op->getOperand(k), one.at},
                       {twin->getOperand(k), other.at}, depth + 1))
      return false;
  return true;
}

std::optional<APFloat> constantOf(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(attribute);
  return number ? std::optional(number.getValue()) : std::nullopt;
}

} // namespace mgpu::conversion
