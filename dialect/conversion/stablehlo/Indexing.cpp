// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations that read where tensors of indices say.
#include "dialect/conversion/stablehlo/Indexing.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

Value indexOf(ImplicitLocOpBuilder &b, Value number, Type type) {
  if (isUnsigned(type))
    return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

Value clampIndex(ImplicitLocOpBuilder &b, Value number, Type type,
                 int64_t most) {
  Value last = arith::ConstantIndexOp::create(b, most);
  Value i = indexOf(b, number, type);
  if (isUnsigned(type)) // what is past 2^63 is as far off as what is past most
    return arith::MinUIOp::create(b, i, last);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, i, zero), last);
}

Value addIndex(ImplicitLocOpBuilder &b, Value i, Value j) {
  return arith::AddIOp::create(b, i, j);
}

Starts::Starts(Lowering &low, ValueRange old) {
  for (Value each : old) {
    Value number = low.number(each);
    numbers.push_back(number);
    tensors.push_back(number ? Value() : low[each]);
    types.push_back(getElementTypeOrSelf(each.getType()));
  }
}

Value Starts::at(ImplicitLocOpBuilder &b, unsigned k, int64_t most) const {
  Value number = numbers[k];
  if (!number)
    number = tensor::ExtractOp::create(b, tensors[k], ValueRange());
  return clampIndex(b, number, types[k], most);
}

static LogicalResult lowerDynamicSlice(Lowering &low, DynamicSliceOp op) {
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  RankedTensorType type = signlessTensor(op.getResult());
  Value input = low[op.getOperand()];
  Starts starts(low, op.getStartIndices());
  low.set(
      op.getResult(),
      low.computed(
          type, [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
            SmallVector<Value> at;
            for (auto [k, i] : llvm::enumerate(point))
              at.push_back(addIndex(
                  b, i,
                  starts.at(b, k, from.getDimSize(k) - type.getDimSize(k))));
            return tensor::ExtractOp::create(b, input, at);
          }));
  return success();
}

static LogicalResult lowerDynamicUpdateSlice(Lowering &low,
                                             DynamicUpdateSliceOp op) {
  RankedTensorType type = signlessTensor(op.getResult());
  auto part = cast<RankedTensorType>(op.getUpdate().getType());
  Value update = low[op.getUpdate()];
  if (part.getNumElements() == 0) {
    low.set(op.getResult(), low[op.getOperand()]);
    return success();
  }
  Starts starts(low, op.getStartIndices());
  auto choose = [&](ImplicitLocOpBuilder &b, ValueRange in) {
    SmallVector<Value> at;
    Value isInside;
    for (int64_t k = 0; k < type.getRank(); ++k) {
      int64_t size = part.getDimSize(k);
      Value i = linalg::IndexOp::create(b, k);
      Value from = arith::SubIOp::create(
          b, i, starts.at(b, k, type.getDimSize(k) - size));
      Value last = arith::ConstantIndexOp::create(b, size - 1);
      // An index before the first is, as an unsigned number, past the last.
      Value fits =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ule, from, last);
      isInside = isInside ? arith::AndIOp::create(b, isInside, fits) : fits;
      at.push_back(arith::MinUIOp::create(b, from, last));
    }
    Value next = tensor::ExtractOp::create(b, update, at);
    if (isInside)
      next = arith::SelectOp::create(b, isInside, next, in[0]);
    return SmallVector<Value>{next};
  };
  low.set(op.getResult(), low.elementwise(type, low[op.getOperand()], choose));
  return success();
}

/// The elements of a gather: dimensions of the result that `offset_dims` lists
/// go through a slice, the others through the tensor of indices.
static LogicalResult lowerGather(Lowering &low, GatherOp op) {
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  auto places = cast<RankedTensorType>(op.getStartIndices().getType());
  RankedTensorType type = signlessTensor(op.getResult());
  auto numbers = op.getDimensionNumbers();
  Value input = low[op.getOperand()], indices = low[op.getStartIndices()];
  int64_t vectorDim = numbers.getIndexVectorDim();
  auto element = [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
    SmallVector<Value> batch, offsets;
    for (auto [k, i] : llvm::enumerate(point))
      (llvm::is_contained(numbers.getOffsetDims(), k) ? offsets : batch)
          .push_back(i);
    SmallVector<Value> at(from.getRank());
    for (auto [k, dimension] : llvm::enumerate(numbers.getStartIndexMap())) {
      SmallVector<Value> of = batch;
      if (vectorDim < places.getRank())
        of.insert(of.begin() + vectorDim, arith::ConstantIndexOp::create(b, k));
      at[dimension] = clampIndex(
          b, tensor::ExtractOp::create(b, indices, of), places.getElementType(),
          from.getDimSize(dimension) - op.getSliceSizes()[dimension]);
    }
    for (auto [own, ofIndices] :
         llvm::zip(numbers.getOperandBatchingDims(),
                   numbers.getStartIndicesBatchingDims()))
      at[own] = batch[ofIndices - (ofIndices > vectorDim ? 1 : 0)];
    unsigned next = 0;
    for (int64_t k = 0; k < from.getRank(); ++k) {
      bool isGone = llvm::is_contained(numbers.getCollapsedSliceDims(), k) ||
                    llvm::is_contained(numbers.getOperandBatchingDims(), k);
      if (!isGone)
        at[k] = at[k] ? addIndex(b, at[k], offsets[next]) : offsets[next];
      next += !isGone;
      if (!at[k])
        at[k] = arith::ConstantIndexOp::create(b, 0);
    }
    return tensor::ExtractOp::create(b, input, at);
  };
  low.set(op.getResult(), low.computed(type, element));
  return success();
}

ArrayRef<NamedFamily> indexingFamily() {
  static const NamedFamily all[] = {
      family<DynamicSliceOp, lowerDynamicSlice>(),
      family<DynamicUpdateSliceOp, lowerDynamicUpdateSlice>(),
      family<GatherOp, lowerGather>(),
  };
  return all;
}

} // namespace mgpu::conversion
