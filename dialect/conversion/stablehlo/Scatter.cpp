// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scatter: threads that cannot meet at an element, each of which takes its
// updates in program order.
#include "dialect/conversion/stablehlo/Indexing.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

class ScatterLoops {
public:
  ScatterLoops(Lowering &low, ScatterOp op);
  SmallVector<Value> make();

private:
  bool isParallel(unsigned dimension);
  int64_t countOf(ArrayRef<unsigned> dimensions) const;
  ThreadPart partOf(Value thread);
  void setPoint(ArrayRef<unsigned> dimensions, Value i);
  SmallVector<Value> makeLoop(ValueRange parts);
  SmallVector<Value> makeUpdate(ValueRange parts);
  SmallVector<Value> place();
  Value isInside(ValueRange at);

  Lowering &low;
  ScatterOp op;
  ScatterDimensionNumbersAttr numbers;
  RankedTensorType type, updateType, indexType;
  SmallVector<Value> inputs, updates;
  Value indices;
  /// Dimensions of the updates: those that go through a window, and the others,
  /// which go through the tensor of indices.
  SmallVector<unsigned> windowDims, scatterDims;
  /// By dimension of the operand: the dimension of the updates that moves it
  /// within a window or from batch to batch.
  SmallVector<std::optional<unsigned>> movedBy;
  SmallVector<unsigned> parallel, serial; ///< dimensions of the updates
  SmallVector<Value> at;                  ///< the point of the updates
};

ScatterLoops::ScatterLoops(Lowering &low, ScatterOp op)
    : low(low), op(op), numbers(op.getScatterDimensionNumbers()),
      type(signlessTensor(op.getInputs()[0])),
      updateType(cast<RankedTensorType>(op.getUpdates()[0].getType())),
      indexType(cast<RankedTensorType>(op.getScatterIndices().getType())),
      inputs(low.all(op.getInputs())), updates(low.all(op.getUpdates())),
      indices(low[op.getScatterIndices()]), movedBy(type.getRank()),
      at(updateType.getRank()) {
  for (int64_t k = 0; k < updateType.getRank(); ++k)
    (llvm::is_contained(numbers.getUpdateWindowDims(), k) ? windowDims
                                                          : scatterDims)
        .push_back(k);
  unsigned next = 0;
  for (int64_t k = 0; k < type.getRank(); ++k)
    if (!llvm::is_contained(numbers.getInsertedWindowDims(), k) &&
        !llvm::is_contained(numbers.getInputBatchingDims(), k))
      movedBy[k] = windowDims[next++];
  for (auto [own, ofIndices] :
       llvm::zip(numbers.getInputBatchingDims(),
                 numbers.getScatterIndicesBatchingDims()))
    movedBy[own] =
        scatterDims[ofIndices - (ofIndices > numbers.getIndexVectorDim())];
  for (int64_t k = 0; k < updateType.getRank(); ++k)
    (isParallel(k) ? parallel : serial).push_back(k);
}

/// Whether two updates that differ in this dimension go to different elements.
bool ScatterLoops::isParallel(unsigned dimension) {
  if (op.getUniqueIndices())
    return true;
  for (auto [k, by] : llvm::enumerate(movedBy))
    if (by == dimension)
      return !llvm::is_contained(numbers.getScatterDimsToOperandDims(), k);
  return false;
}

/// How many points `dimensions` of the updates have.
int64_t ScatterLoops::countOf(ArrayRef<unsigned> dimensions) const {
  int64_t count = 1;
  for (unsigned dimension : dimensions)
    count *= updateType.getDimSize(dimension);
  return count;
}

/// The element of the operand that an update goes to.
SmallVector<Value> ScatterLoops::place() {
  ImplicitLocOpBuilder &b = low.b;
  SmallVector<Value> to(type.getRank());
  for (auto [k, by] : llvm::enumerate(movedBy))
    to[k] = by ? at[*by] : low.index(0);
  int64_t vectorDim = numbers.getIndexVectorDim();
  for (auto [k, dimension] :
       llvm::enumerate(numbers.getScatterDimsToOperandDims())) {
    SmallVector<Value> of;
    for (unsigned each : scatterDims)
      of.push_back(at[each]);
    if (vectorDim < indexType.getRank())
      of.insert(of.begin() + vectorDim, low.index(k));
    Type number = indexType.getElementType();
    Value start = indexOf(b, tensor::ExtractOp::create(b, indices, of), number);
    // An index past the end stays there when a place in a window is added.
    if (isUnsigned(number))
      start = arith::MinUIOp::create(b, start,
                                     low.index(type.getDimSize(dimension)));
    to[dimension] = addIndex(b, start, to[dimension]);
  }
  return to;
}

Value ScatterLoops::isInside(ValueRange to) {
  ImplicitLocOpBuilder &b = low.b;
  Value inside;
  for (int64_t dimension : numbers.getScatterDimsToOperandDims()) {
    // A negative index is, as an unsigned number, past the end.
    Value fits =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, to[dimension],
                              low.index(type.getDimSize(dimension)));
    inside = inside ? arith::AndIOp::create(b, inside, fits) : fits;
  }
  return inside;
}

SmallVector<Value> ScatterLoops::makeUpdate(ValueRange parts) {
  ImplicitLocOpBuilder &b = low.b;
  SmallVector<Value> to = place();
  Value inside = isInside(to);
  // Along dimensions that a thread keeps to, its part has one element.
  for (auto [k, by] : llvm::enumerate(movedBy))
    if (by && llvm::is_contained(parallel, *by) && !op.getUniqueIndices())
      to[k] = low.index(0);
  auto store = [&](OpBuilder &nested) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
    SmallVector<Value> elements, results;
    for (Value part : parts)
      elements.push_back(tensor::ExtractOp::create(b, part, to));
    for (Value update : updates)
      elements.push_back(tensor::ExtractOp::create(b, update, at));
    SmallVector<Value> made =
        low.inlined(b, op.getUpdateComputation(), elements);
    for (auto [element, part] : llvm::zip(made, parts))
      results.push_back(tensor::InsertOp::create(b, element, part, to));
    if (inside)
      scf::YieldOp::create(b, results);
    return results;
  };
  if (!inside)
    return store(b);
  auto branch = scf::IfOp::create(
      b, inside, [&](OpBuilder &nested, Location) { store(nested); },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, parts);
      });
  return SmallVector<Value>(branch.getResults());
}

/// Says at which point of `dimensions` the number `i` is, the last dimension
/// first.
void ScatterLoops::setPoint(ArrayRef<unsigned> dimensions, Value i) {
  ImplicitLocOpBuilder &b = low.b;
  for (auto [k, dimension] : llvm::enumerate(llvm::reverse(dimensions))) {
    Value size = low.index(updateType.getDimSize(dimension));
    const bool isOutermost = k + 1 == dimensions.size();
    at[dimension] =
        isOutermost ? i : arith::RemUIOp::create(b, i, size).getResult();
    i = isOutermost ? i : arith::DivUIOp::create(b, i, size).getResult();
  }
}

/// One loop over all updates of a thread in program order: bufferization finds
/// the parts that nested loops carry to conflict.
SmallVector<Value> ScatterLoops::makeLoop(ValueRange parts) {
  if (serial.empty())
    return makeUpdate(parts);
  ImplicitLocOpBuilder &b = low.b;
  auto loop = scf::ForOp::create(
      b, low.index(0), low.index(countOf(serial)), low.index(1), parts,
      [&](OpBuilder &nested, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        setPoint(serial, i);
        scf::YieldOp::create(b, makeUpdate(carried));
      });
  return SmallVector<Value>(loop.getResults());
}

/// The part of the results that a thread alone writes.
ThreadPart ScatterLoops::partOf(Value thread) {
  ImplicitLocOpBuilder &b = low.b;
  // A second thread where one is enough has nothing to do.
  setPoint(parallel, countOf(parallel) == 1 ? low.index(0) : thread);
  ThreadPart part;
  part.offsets.assign(type.getRank(), b.getIndexAttr(0));
  for (int64_t size : type.getShape())
    part.sizes.push_back(b.getIndexAttr(size));
  for (auto [k, by] : llvm::enumerate(movedBy)) {
    if (op.getUniqueIndices() || !by || !llvm::is_contained(parallel, *by))
      continue;
    part.offsets[k] = at[*by];
    part.sizes[k] = b.getIndexAttr(1);
  }
  return part;
}

SmallVector<Value> ScatterLoops::make() {
  if (updateType.getNumElements() == 0 || type.getNumElements() == 0)
    return inputs;
  return low.inThreads(
      countOf(parallel), inputs, [&](Value thread) { return partOf(thread); },
      [&](ValueRange parts) { return makeLoop(parts); });
}

LogicalResult lowerScatter(Lowering &low, ScatterOp op) {
  if (failed(checkScalars(op.getUpdateComputation())))
    return failure();
  low.setAll(op.getResults(), ScatterLoops(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> scatterFamily() {
  static const NamedFamily all[] = {family<ScatterOp, lowerScatter>()};
  return all;
}

} // namespace mgpu::conversion
