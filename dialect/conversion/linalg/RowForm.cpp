// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/RowForm.h"

#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/ProductSteps.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

namespace mgpu::conversion {

using namespace mlir;
using Combine = gpu::AllReduceOperation;

static std::optional<Combine> combinerKind(Operation *op) {
  auto kind = linalg::getCombinerOpKind(op);
  if (kind)
    for (unsigned k = 0; k <= gpu::getMaxEnumValForAllReduceOperation(); ++k)
      if (gpu::convertReductionKind(Combine(k)) == *kind)
        return Combine(k);
  return std::nullopt;
}

/// Minus infinity, or where the format has none its least number; or both
/// without the minus.
static APFloat furthest(const llvm::fltSemantics &semantics, bool isNegative) {
  return APFloat::semanticsHasInf(semantics)
             ? APFloat::getInf(semantics, isNegative)
             : APFloat::getLargest(semantics, isNegative);
}

TypedAttr neutralOf(Combine kind, Type type) {
  if (auto number = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = number.getFloatSemantics();
    switch (kind) {
    case Combine::ADD: // 0 would make -0 of a sum 0
      return FloatAttr::get(number, APFloat::getZero(semantics, true));
    case Combine::MUL:
      return FloatAttr::get(number, APFloat::getOne(semantics));
    case Combine::MAXIMUMF:
      return FloatAttr::get(number, furthest(semantics, true));
    case Combine::MINIMUMF:
      return FloatAttr::get(number, furthest(semantics, false));
    default: // the larger or smaller of a number and NaN is the number
      return FloatAttr::get(number, APFloat::getQNaN(semantics));
    }
  }
  auto integer = cast<IntegerType>(type);
  unsigned width = integer.getWidth();
  switch (kind) {
  case Combine::MUL:
    return IntegerAttr::get(integer, APInt(width, 1));
  case Combine::MAXSI:
    return IntegerAttr::get(integer, APInt::getSignedMinValue(width));
  case Combine::MINSI:
    return IntegerAttr::get(integer, APInt::getSignedMaxValue(width));
  case Combine::MINUI:
  case Combine::AND:
    return IntegerAttr::get(integer, APInt::getAllOnes(width));
  default:
    return IntegerAttr::get(integer, APInt::getZero(width));
  }
}

Value visibleDevice(const RowForm &form) {
  SmallVector<Value> memrefs;
  for (const RowAccess &access : form.accesses)
    memrefs.push_back(access.memref);
  return ir::visibleDevice(memrefs);
}

Operation *combinerOf(linalg::LinalgOp op, unsigned k) {
  return op.getBlock()->getTerminator()->getOperand(k).getDefiningOp();
}

/// For each result, what the body does with the result so far and one more
/// element; none if it does anything else with it.
static std::optional<SmallVector<Combine>> combinersOf(linalg::LinalgOp op) {
  SmallVector<Combine> kinds;
  for (auto [k, output] : llvm::enumerate(op.getRegionOutputArgs())) {
    Operation *last = combinerOf(op, unsigned(k));
    auto kind = last && last->getBlock() == op.getBlock() ? combinerKind(last)
                                                          : std::nullopt;
    Type type = output.getType();
    bool isKnown =
        isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type) ||
        (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() >= 8);
    if (!kind || !isKnown || !output.hasOneUse() || !last->hasOneUse() ||
        *output.user_begin() != last ||
        last->getOperand(0) == last->getOperand(1))
      return std::nullopt;
    kinds.push_back(*kind);
  }
  return kinds;
}

/// Whether rows along a dimension are rows of memory (true), columns of it
/// (false), which the last parallel dimension counts, or neither.
static std::optional<bool> isInnerIn(linalg::LinalgOp op, unsigned along) {
  unsigned lastParallel = op.getNumLoops();
  for (auto [k, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      lastParallel = unsigned(k);
  bool isUsed = false, isInner = false, isAcross = false;
  for (OpOperand &operand : op->getOpOperands()) {
    ArrayRef<AffineExpr> results =
        op.getMatchingIndexingMap(&operand).getResults();
    for (AffineExpr each : results) {
      if (!each.isFunctionOfDim(along))
        continue;
      auto last = dyn_cast<AffineDimExpr>(results.back());
      if (!isa<AffineDimExpr>(each) || !last)
        return std::nullopt;
      isUsed = true;
      if (last.getPosition() == along)
        // An element that neighbouring columns share serves them as well as it
        // serves rows.
        isInner |= llvm::any_of(results, [&](AffineExpr index) {
          return index.isFunctionOfDim(lastParallel);
        });
      else if (last.getPosition() == lastParallel)
        isAcross = true;
      else
        return std::nullopt;
    }
  }
  if (!isUsed || (isInner && isAcross))
    return std::nullopt;
  return !isAcross;
}

static std::optional<RowForm> structuredForm(linalg::LinalgOp op, RowKind kind,
                                             std::optional<unsigned> wanted) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  // The commonest reason is seen first: it is the cheapest to find.
  if (reductions.size() != (kind == RowKind::Reduce ? 1 : 0) ||
      (isPlainMatmul(op) && !skinnyProductOf(op)) || !hasPointForm(op))
    return std::nullopt;
  RowForm form;
  form.kind = kind;
  SmallVector<int64_t> extents = loopRangesOf(op);
  int along = -1; // the dimension within a row
  if (kind == RowKind::Reduce) {
    auto isInner = isInnerIn(op, reductions[0]);
    if (!isInner)
      return std::nullopt;
    form.isInner = *isInner;
    auto combiners = combinersOf(op);
    if (!combiners)
      return std::nullopt;
    form.combiners = std::move(*combiners);
    along = int(reductions[0]);
  } else if (kind == RowKind::Elements) {
    unsigned last = unsigned(extents.size()) - 1;
    if (extents.empty() || wanted.value_or(last) > last)
      return std::nullopt;
    along = int(wanted.value_or(last));
  }
  form.along = along < 0 ? unsigned(extents.size()) : unsigned(along);
  SmallVector<int> axisOf;
  for (auto [k, extent] : llvm::enumerate(extents)) {
    axisOf.push_back(int(k) == along ? RowAccess::element
                                     : int(form.rows.size()));
    if (int(k) == along)
      form.length = extent;
    else
      form.rows.push_back(extent);
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    RowAccess access{operand.get(), op.isDpsInit(&operand), SmallVector<int>()};
    for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults()) {
      auto dimension = dyn_cast<AffineDimExpr>(each);
      if (!dimension) {
        access.axes.reset();
        break;
      }
      access.axes->push_back(axisOf[dimension.getPosition()]);
    }
    form.accesses.push_back(std::move(access));
  }
  for (Value memref : memrefsReadInBody(op))
    form.accesses.push_back({memref, false, std::nullopt});
  return form;
}

static std::optional<RowForm> softmaxForm(linalg::SoftmaxOp op) {
  auto type = dyn_cast<MemRefType>(op.getInput().getType());
  auto output = dyn_cast<MemRefType>(op.getOutput().getType());
  if (!type || !output || !type.hasStaticShape() || !output.hasStaticShape())
    return std::nullopt;
  RowForm form;
  form.kind = RowKind::Softmax;
  form.along = unsigned(op.getDimension());
  form.isInner = int64_t(form.along) + 1 == type.getRank();
  form.rows.assign(type.getShape().begin(), type.getShape().end());
  form.length = type.getDimSize(form.along);
  form.rows.erase(form.rows.begin() + form.along);
  SmallVector<int> axes;
  for (size_t k = 0; k < form.rows.size(); ++k)
    axes.push_back(int(k));
  axes.insert(axes.begin() + form.along, RowAccess::element);
  form.accesses = {{op.getInput(), false, axes}, {op.getOutput(), true, axes}};
  return form;
}

/// Whether another row, or another element of it, surely is another place.
static bool isOwn(const RowForm &form, const RowAccess &access) {
  if (!access.axes)
    return false;
  for (auto [k, extent] : llvm::enumerate(form.rows))
    if (extent > 1 && !llvm::is_contained(*access.axes, int(k)))
      return false;
  bool hasElements =
      form.kind == RowKind::Elements || form.kind == RowKind::Softmax;
  return !hasElements ||
         llvm::is_contained(*access.axes, int(RowAccess::element));
}

std::optional<RowForm> rowFormOf(Operation *op, RowKind kind,
                                 std::optional<unsigned> along) {
  std::optional<RowForm> form;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    if (kind == RowKind::Softmax)
      form = softmaxForm(softmax);
  } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    if (kind != RowKind::Softmax)
      form = structuredForm(structured, kind, along);
  }
  if (!form || llvm::is_contained(form->rows, 0) ||
      (kind != RowKind::Scalars && form->length == 0))
    return std::nullopt;
  for (const RowAccess &access : form->accesses) {
    if (access.isWritten && !isOwn(*form, access))
      return std::nullopt;
    // It reads a memref that it writes at the same place, or not at all.
    for (const RowAccess &other : form->accesses)
      if (access.isWritten && &other != &access &&
          ir::rootOf(access.memref) == ir::rootOf(other.memref) &&
          !ir::areApart(access.memref, other.memref) &&
          (access.memref != other.memref || access.axes != other.axes))
        return std::nullopt;
  }
  return form;
}

} // namespace mgpu::conversion
