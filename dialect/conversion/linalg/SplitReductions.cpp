// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Long rows, where they are few, occupy a GPU only if many blocks share each.
// Blocks do not wait for each other, so such a reduction becomes two: chunks of
// the rows are reduced as rows of their own, and then what each row's chunks
// gave. docs/numerics.md states the order; it depends on the shapes alone.
#include "dialect/conversion/FewVectors.h"
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/Computations.h"
#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/ProductSteps.h"
#include "dialect/conversion/linalg/RowThreads.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// Reductions of long rows by chunks that blocks share.

namespace {

/// Splits one reduction of rows.
class Splitter {
public:
  Splitter(linalg::LinalgOp op, const RowForm &form, RowChunks chunks,
           Value device)
      : op(op), form(form), chunks(chunks), device(device), b(place()) {}

  void split() {
    markProduct(op);
    const SmallVector<Value> parts = reduceChunks();
    b.setInsertionPoint(op);
    if (chunks.count * chunks.length < form.length)
      reduceRest();
    combine(parts);
    op->erase();
  }

private:
  /// Before what begins the results, so that it can share the last launch.
  Operation *place();
  /// An input's elements from `first` to `end` of each row.
  Value slice(OpOperand &input, int64_t first, int64_t end);
  /// The chunks of a slice, and the map that indexes them.
  Value expanded(OpOperand &input, Value slice, AffineMap &map);
  SmallVector<Value> reduceChunks();
  void reduceRest();
  void combine(ArrayRef<Value> parts);
  bool isAlong(AffineExpr index) { return index.isFunctionOfDim(form.along); }
  /// Calls `make` for a buffer and an input's indices along the rows, once for
  /// all inputs that have both in common.
  Value once(Value buffer, OpOperand &input, function_ref<Value()> make);
  StringAttr name(StringRef suffix);

  linalg::LinalgOp op;
  const RowForm &form;
  RowChunks chunks;
  Value device;
  OpBuilder b;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> made;
};

Value Splitter::once(Value buffer, OpOperand &input,
                     function_ref<Value()> make) {
  unsigned along = 0;
  for (auto [k, index] :
       llvm::enumerate(op.getMatchingIndexingMap(&input).getResults()))
    along |= unsigned(isAlong(index)) << k;
  Value &found = made[{buffer, along}];
  return found ? found : found = make();
}

Operation *Splitter::place() {
  Operation *place = op;
  for (Operation *prev = op->getPrevNode(); prev; prev = prev->getPrevNode()) {
    auto isMade = [&](Value value) { return value.getDefiningOp() == prev; };
    if (isMade(device) || llvm::any_of(op.getDpsInputs(), isMade) ||
        llvm::any_of(memrefsReadInBody(op), isMade))
      break;
    auto fill = dyn_cast<linalg::FillOp>(prev);
    if (fill && llvm::is_contained(op.getDpsInits(), fill.output()))
      place = prev;
    else if (!mayBeBetween(prev))
      break;
  }
  return place;
}

StringAttr Splitter::name(StringRef suffix) {
  auto given = op->getAttrOfType<StringAttr>("mgpu.name");
  return b.getStringAttr(
      (given ? given.getValue() : op->getName().stripDialect()) + suffix);
}

Value Splitter::slice(OpOperand &input, int64_t first, int64_t end) {
  AffineMap map = op.getMatchingIndexingMap(&input);
  if (end - first == form.length ||
      !llvm::any_of(map.getResults(), [&](auto e) { return isAlong(e); }))
    return input.get();
  SmallVector<OpFoldResult> offsets, sizes;
  auto type = cast<MemRefType>(input.get().getType());
  for (auto [extent, index] : llvm::zip(type.getShape(), map.getResults())) {
    offsets.push_back(b.getIndexAttr(isAlong(index) ? first : 0));
    sizes.push_back(b.getIndexAttr(isAlong(index) ? end - first : extent));
  }
  SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
  return once(input.get(), input, [&] {
    return memref::SubViewOp::create(b, op.getLoc(), input.get(), offsets,
                                     sizes, strides);
  });
}

Value Splitter::expanded(OpOperand &input, Value slice, AffineMap &map) {
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups;
  SmallVector<AffineExpr> indices;
  for (auto [k, index] : llvm::enumerate(map.getResults())) {
    ReassociationIndices &group = groups.emplace_back();
    group.push_back(int64_t(shape.size()));
    if (isAlong(index)) {
      group.push_back(int64_t(shape.size()) + 1);
      llvm::append_values(shape, chunks.count, chunks.length);
      indices.push_back(b.getAffineDimExpr(0));
    } else {
      shape.push_back(cast<MemRefType>(slice.getType()).getDimSize(k));
    }
    indices.push_back(index.shiftDims(map.getNumDims(), 1));
  }
  map = AffineMap::get(map.getNumDims() + 1, 0, indices, b.getContext());
  if (shape.size() == groups.size())
    return slice;
  return once(slice, input, [&] {
    return memref::ExpandShapeOp::create(b, op.getLoc(), shape, slice, groups);
  });
}

/// Reduces them where the first dimension counts the chunks, in the operands
/// and in what it returns.
SmallVector<Value> Splitter::reduceChunks() {
  SmallVector<Value> inputs, parts;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    maps.push_back(op.getMatchingIndexingMap(input));
    Value whole = slice(*input, 0, chunks.count * chunks.length);
    inputs.push_back(expanded(*input, whole, maps.back()));
  }
  for (auto [k, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    auto type = cast<MemRefType>(init.get().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), chunks.count);
    type = MemRefType::get(shape, type.getElementType());
    parts.push_back(
        ir::AllocOp::create(b, named(op.getLoc(), "parts"), type, device));
    Value neutral = arith::ConstantOp::create(
        b, op.getLoc(), neutralOf(form.combiners[k], type.getElementType()));
    linalg::FillOp::create(b, op.getLoc(), neutral, parts.back());
    maps.push_back(op.getMatchingIndexingMap(&init).shiftDims(1).insertResult(
        b.getAffineDimExpr(0), 0));
  }
  auto iterators = op.getIteratorTypesArray();
  iterators.insert(iterators.begin(), utils::IteratorType::parallel);
  auto all =
      linalg::GenericOp::create(b, op.getLoc(), inputs, parts, maps, iterators);
  all->setAttr("mgpu.name", name("_chunks"));
  IRMapping map;
  op->getRegion(0).cloneInto(&all.getRegion(), map);
  return parts;
}

/// Reduces what is behind the last chunk, as a row of its own.
void Splitter::reduceRest() {
  made.clear(); // which are other slices
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands())
    inputs.push_back(slice(*input, chunks.count * chunks.length, form.length));
  auto rest = linalg::GenericOp::create(
      b, op.getLoc(), inputs, SmallVector<Value>(op.getDpsInits()),
      op.getIndexingMapsArray(), op.getIteratorTypesArray());
  rest->setAttr("mgpu.name", name("_rest"));
  IRMapping map;
  op->getRegion(0).cloneInto(&rest.getRegion(), map);
}

/// Reduces what the chunks of each row gave.
void Splitter::combine(ArrayRef<Value> parts) {
  SmallVector<AffineMap> maps;
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init).insertResult(
        b.getAffineDimExpr(form.along), 0));
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), parts, SmallVector<Value>(op.getDpsInits()), maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        SmallVector<Value> results;
        for (auto [k, output] : llvm::enumerate(op.getRegionOutputArgs())) {
          Operation *last = combinerOf(op, unsigned(k));
          IRMapping map;
          for (Value operand : last->getOperands())
            map.map(operand,
                    arguments[operand == output ? k + parts.size() : k]);
          results.push_back(inner.clone(*last, map)->getResult(0));
        }
        linalg::YieldOp::create(inner, loc, results);
      });
  made->setAttr("mgpu.name", name(""));
}

} // namespace

/// Replaces a reduction of rows, each of whose results has all parallel
/// dimensions, by reductions of the chunks, of a rest, and of what the chunks
/// gave. `device` has its buffers.
static void reduceByChunks(linalg::LinalgOp op, const RowForm &form,
                           RowChunks chunks, Value device) {
  Splitter(op, form, chunks, device).split();
}

// Reductions along several dimensions as reductions along one.

namespace {

/// Dimensions that follow each other, of which one stays.
struct Sequence {
  unsigned first, count;
  bool isLater(AffineExpr index) const {
    auto dim = dyn_cast<AffineDimExpr>(index);
    return dim && dim.getPosition() > first &&
           dim.getPosition() < first + count;
  }
};

/// The map without the later dimensions, in its domain and its results.
AffineMap collapsed(AffineMap map, Sequence sequence) {
  SmallVector<AffineExpr> results;
  for (AffineExpr each : map.getResults()) {
    if (sequence.isLater(each))
      continue;
    if (auto dim = dyn_cast<AffineDimExpr>(each);
        dim && dim.getPosition() > sequence.first)
      each = getAffineDimExpr(dim.getPosition() - sequence.count + 1,
                              map.getContext());
    results.push_back(each);
  }
  return AffineMap::get(map.getNumDims() - sequence.count + 1, 0, results,
                        map.getContext());
}

/// Which dimensions of an operand its view joins.
SmallVector<ReassociationIndices> groupsOf(AffineMap map, Sequence sequence) {
  SmallVector<ReassociationIndices> groups;
  for (auto [k, each] : llvm::enumerate(map.getResults())) {
    if (!sequence.isLater(each))
      groups.emplace_back();
    groups.back().push_back(int64_t(k));
  }
  return groups;
}

} // namespace

/// Makes, before `op`, the same operation with one reduction dimension in place
/// of several, on views of its inputs. Null where there are not several, or
/// they do not follow each other in memory.
static linalg::GenericOp collapseReduction(linalg::LinalgOp op) {
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
    if (!map.isProjectedPermutation(/*allowZeroInResults=*/true) ||
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

namespace {

/// Whether each result has the parallel dimensions as its own, so that they can
/// be read from what the chunks gave.
bool isOfAllPoints(linalg::LinalgOp op) {
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    return map.isProjectedPermutation() &&
           map.getNumResults() == op.getNumParallelLoops();
  });
}

/// The bytes of an element of the matrix where `op` multiplies vectors with a
/// large one, whose columns are the rows; 0 of other reductions.
int64_t bytesOfMatrix(linalg::LinalgOp op, const RowForm &form) {
  int64_t elements = form.length;
  for (int64_t rows : form.rows)
    elements *= rows;
  if (form.isInner || op.getNumDpsInputs() < 2 || elements < leastMatrix)
    return 0;
  int64_t matrix = 0;
  for (OpOperand *input : op.getDpsInputOperands()) {
    const bool isMemory = isa<MemRefType>(input->get().getType());
    AffineMap map = op.getMatchingIndexingMap(input);
    const bool isVector = llvm::all_of(map.getResults(), [&](AffineExpr each) {
      auto dimension = dyn_cast<AffineDimExpr>(each);
      return dimension
                 ? dimension.getPosition() == form.along ||
                       op.getStaticLoopRanges()[dimension.getPosition()] == 1
                 : isa<AffineConstantExpr>(each);
    });
    if (!isMemory || (!isVector && matrix))
      return 0;
    if (!isVector)
      matrix = std::max<int64_t>(
          getElementTypeOrSelf(input->get()).getIntOrFloatBitWidth() / 8, 1);
  }
  return matrix;
}

/// Splits `op` and returns true if its rows are few and long, or it is a
/// product.
bool trySplit(linalg::LinalgOp op) {
  auto form = rowFormOf(op, RowKind::Reduce);
  const int64_t bytes = form ? bytesOfMatrix(op, *form) : 0;
  auto chunks = bytes  ? chunksOfProduct(*form, bytes)
                : form ? chunksOf(*form)
                       : std::nullopt;
  Value device = chunks ? visibleDevice(*form) : Value();
  if (!device || op.hasIndexSemantics() || !isOfAllPoints(op))
    return false;
  reduceByChunks(op, *form, *chunks, device);
  return true;
}

/// Whether threads share the rows that `op` reduces.
bool isShared(linalg::LinalgOp op) {
  auto form = rowFormOf(op, RowKind::Reduce);
  return form && form->isInner && sharingOf(*form);
}

/// Makes one dimension of several where that is split, or its rows are shared.
bool tryCollapsed(linalg::LinalgOp op) {
  linalg::GenericOp one = collapseReduction(op);
  if (!one)
    return false;
  const SmallVector<Value> views(one.getInputs());
  const bool isDone = trySplit(one) || isShared(one);
  if (isDone)
    op->erase();
  else
    one->erase();
  for (Value each : views)
    if (auto view = each.getDefiningOp<memref::CollapseShapeOp>())
      if (view->use_empty())
        view->erase();
  return isDone;
}

struct SplitReductions : impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (Operation *each : computationsOf(getOperation(), entry))
      if (auto op = dyn_cast<linalg::LinalgOp>(each))
        isChanged |= trySplit(op) || tryCollapsed(op);
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
