// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of gather and scatter, which say one thing: for each vector of indices
// a slice of the operand, whose dimensions stand among those of the slices.
#include "dialect/stablehlo/StablehloRules.h"

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {
/// The dimension numbers of a gather or a scatter, by what they mean.
struct Indexing {
  ArrayRef<int64_t> windowDims;   ///< of the slices, those within a slice
  ArrayRef<int64_t> droppedDims;  ///< of the operand, not within a slice
  ArrayRef<int64_t> batchDims;    ///< of the operand, as the indices' below
  ArrayRef<int64_t> indexBatches; ///< of the indices
  ArrayRef<int64_t> map; ///< of the operand, for each index of a vector
  int64_t vectorDim;     ///< of the indices
  const char *windowName, *droppedName;
};
} // namespace

/// The dimensions of `rank` that are in neither list.
static Shape otherDims(size_t rank, ArrayRef<int64_t> left,
                       ArrayRef<int64_t> right = {}) {
  Shape others;
  for (int64_t dim = 0; dim < int64_t(rank); ++dim)
    if (!llvm::is_contained(left, dim) && !llvm::is_contained(right, dim))
      others.push_back(dim);
  return others;
}

/// Whether the numbers name dimensions of the operand and the indices.
static LogicalResult checkIndexing(Operation *op, const Indexing &with,
                                   ArrayRef<int64_t> operand,
                                   ArrayRef<int64_t> indices) {
  size_t rank = operand.size();
  if (with.vectorDim < 0 || with.vectorDim > int64_t(indices.size()))
    return op->emitOpError()
           << "index_vector_dim is " << with.vectorDim
           << ", and the indices have rank " << indices.size();
  Shape dropped(with.droppedDims), mapped(with.map);
  llvm::append_range(dropped, with.batchDims);
  llvm::append_range(mapped, with.batchDims);
  if (failed(checkCount(op, "the operand's shape", rank,
                        with.windowDims.size() + dropped.size())) ||
      failed(checkSortedDims(op, with.droppedName, with.droppedDims, rank)) ||
      failed(checkSortedDims(op, "batching dims", with.batchDims, rank)) ||
      failed(checkDims(op, with.droppedName, dropped, rank)) ||
      failed(checkDims(op, "the index map", mapped, rank)) ||
      failed(checkDims(op, "the indices' batching dims", with.indexBatches,
                       indices.size())) ||
      failed(checkCount(op, "the indices' batching dims",
                        with.indexBatches.size(), with.batchDims.size())))
    return failure();
  if (llvm::is_contained(with.indexBatches, with.vectorDim))
    return op->emitOpError()
           << "the indices' batching dims must not have index_vector_dim";
  int64_t vector =
      with.vectorDim < int64_t(indices.size()) ? indices[with.vectorDim] : 1;
  if (!isDynamic(vector) &&
      failed(checkCount(op, "the index map", with.map.size(), vector)))
    return failure();
  for (auto [left, right] : llvm::zip(with.batchDims, with.indexBatches))
    if (!sizesAgree(operand[left], indices[right]))
      return op->emitOpError() << "batching dimensions must have one size, not "
                               << operand[left] << " and " << indices[right];
  return success();
}

/// The shape of the slices: the indices' without vectors, and among them those
/// of a slice, `window`.
static FailureOr<Shape> slicesShape(Operation *op, const Indexing &with,
                                    ArrayRef<int64_t> indices,
                                    ArrayRef<int64_t> window) {
  Shape batch;
  for (auto [dim, size] : llvm::enumerate(indices))
    if (int64_t(dim) != with.vectorDim)
      batch.push_back(size);
  size_t rank = batch.size() + window.size();
  if (failed(checkSortedDims(op, with.windowName, with.windowDims, rank)))
    return failure();
  Shape shape(rank);
  for (auto [dim, size] : llvm::zip(with.windowDims, window))
    shape[dim] = size;
  for (auto [dim, size] : llvm::zip(otherDims(rank, with.windowDims), batch))
    shape[dim] = size;
  return shape;
}

LogicalResult GatherOp::verify() {
  GatherDimensionNumbersAttr numbers = getDimensionNumbers();
  Indexing with = {numbers.getOffsetDims(),
                   numbers.getCollapsedSliceDims(),
                   numbers.getOperandBatchingDims(),
                   numbers.getStartIndicesBatchingDims(),
                   numbers.getStartIndexMap(),
                   numbers.getIndexVectorDim(),
                   "offset_dims",
                   "collapsed_slice_dims"};
  ArrayRef<int64_t> operand = shapeOf(getOperand());
  ArrayRef<int64_t> indices = shapeOf(getStartIndices());
  ArrayRef<int64_t> sizes = getSliceSizes();
  if (failed(checkIndexing(*this, with, operand, indices)) ||
      failed(checkCount(*this, "slice_sizes", sizes.size(), operand.size())))
    return failure();
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(sizes, operand))) {
    auto [size, all] = pair;
    bool isDropped = llvm::is_contained(with.droppedDims, int64_t(dim)) ||
                     llvm::is_contained(with.batchDims, int64_t(dim));
    if (size < 0 || (!isDynamic(all) && size > all) || (isDropped && size > 1))
      return emitOpError() << "cannot take slices of " << size << " of " << all
                           << " elements of dimension " << dim;
  }
  Shape window = llvm::map_to_vector(
      otherDims(operand.size(), with.droppedDims, with.batchDims),
      [&](int64_t dim) { return sizes[dim]; });
  FailureOr<Shape> shape = slicesShape(*this, with, indices, window);
  if (failed(shape))
    return failure();
  return checkResult(*this, getResult(), *shape, elementOf(getOperand()));
}

/// The updates are slices that fit into the inputs.
static LogicalResult checkUpdates(ScatterOp op, const Indexing &with,
                                  ArrayRef<int64_t> input) {
  Value updates = op.getUpdates()[0];
  ArrayRef<int64_t> shape = shapeOf(updates);
  if (failed(
          checkSortedDims(op, with.windowName, with.windowDims, shape.size())))
    return failure();
  Shape window = llvm::map_to_vector(with.windowDims,
                                     [&](int64_t dim) { return shape[dim]; });
  for (auto [size, dim] : llvm::zip(
           window, otherDims(input.size(), with.droppedDims, with.batchDims)))
    if (!isDynamic(size) && !isDynamic(input[dim]) && size > input[dim])
      return op.emitOpError() << "cannot update " << size << " of "
                              << input[dim] << " elements of dimension " << dim;
  FailureOr<Shape> expected =
      slicesShape(op, with, shapeOf(op.getScatterIndices()), window);
  if (failed(expected))
    return failure();
  for (Value each : op.getUpdates())
    if (!shapesAgree(shapeOf(each), *expected))
      return op.emitOpError()
             << "must have updates like "
             << RankedTensorType::get(*expected, elementOf(each)) << ", not "
             << each.getType();
  return success();
}

LogicalResult ScatterOp::verify() {
  ScatterDimensionNumbersAttr numbers = getScatterDimensionNumbers();
  Indexing with = {numbers.getUpdateWindowDims(),
                   numbers.getInsertedWindowDims(),
                   numbers.getInputBatchingDims(),
                   numbers.getScatterIndicesBatchingDims(),
                   numbers.getScatterDimsToOperandDims(),
                   numbers.getIndexVectorDim(),
                   "update_window_dims",
                   "inserted_window_dims"};
  if (getInputs().empty())
    return emitOpError() << "must have an operand to update";
  ArrayRef<int64_t> input = shapeOf(getInputs()[0]);
  for (Value each : getInputs())
    if (!shapesAgree(shapeOf(each), input))
      return emitOpError() << "must have operands of one shape, not "
                           << getInputs()[0].getType() << " and "
                           << each.getType();
  if (failed(checkIndexing(*this, with, input, shapeOf(getScatterIndices()))) ||
      failed(checkUpdates(*this, with, input)) ||
      failed(
          checkCount(*this, "the result", getNumResults(), getInputs().size())))
    return failure();
  SmallVector<Type> inputs, updates;
  for (auto [operand, update, result] :
       llvm::zip(getInputs(), getUpdates(), getResults())) {
    inputs.push_back(elementOf(result));
    updates.push_back(elementOf(update));
    if (failed(checkResult(*this, result, shapeOf(operand))))
      return failure();
  }
  SmallVector<Type> arguments(inputs);
  llvm::append_range(arguments, inputs);
  return checkComputation(*this, getUpdateComputation(), arguments, inputs);
}
