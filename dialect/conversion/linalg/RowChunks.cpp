// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/RowChunks.h"

#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/PointRun.h"
#include "dialect/conversion/linalg/ProductSteps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

using namespace mlir;

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

void reduceByChunks(linalg::LinalgOp op, const RowForm &form, RowChunks chunks,
                    Value device) {
  Splitter(op, form, chunks, device).split();
}

} // namespace mgpu::conversion
