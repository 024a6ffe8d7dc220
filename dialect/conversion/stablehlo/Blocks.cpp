// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of linalg and tensor that several families are made of.
#include "dialect/conversion/TensorShapes.h"
#include "dialect/conversion/stablehlo/Lowering.h"

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Value> Lowering::generic(const Generic &of, BodyBuilder body) {
  SmallVector<utils::IteratorType> iterators(of.parallel,
                                             utils::IteratorType::parallel);
  iterators.append(of.reduction, utils::IteratorType::reduction);
  SmallVector<Type> types = llvm::to_vector(ValueRange(of.inits).getTypes());
  auto op = linalg::GenericOp::create(
      b, types, of.inputs, of.inits, of.maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange elements) {
        ImplicitLocOpBuilder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, elements));
      });
  return SmallVector<Value>(op.getResults());
}

Value Lowering::filledWith(RankedTensorType type, Value number) {
  return linalg::FillOp::create(b, number, empty(type)).getResult(0);
}

Value Lowering::filled(RankedTensorType type, Value oldElement) {
  if (Value known = number(oldElement))
    return filledWith(type, known);
  return elementwise(type, (*this)[oldElement],
                     [](ImplicitLocOpBuilder &, ValueRange in) {
                       return SmallVector<Value>{in[0]};
                     });
}

Value Lowering::elementwise(RankedTensorType type, ValueRange inputs,
                            BodyBuilder body) {
  unsigned rank = type.getRank();
  Generic of;
  of.parallel = rank;
  of.inputs = llvm::to_vector(inputs);
  of.inits = {empty(type)};
  AffineMap same = b.getMultiDimIdentityMap(rank);
  for (Value input : inputs)
    of.maps.push_back(cast<RankedTensorType>(input.getType()).getRank() == 0
                          ? AffineMap::get(rank, 0, b.getContext())
                          : same);
  of.maps.push_back(same);
  return generic(of, [&](ImplicitLocOpBuilder &inner, ValueRange elements) {
    return body(inner, elements.drop_back());
  })[0];
}

Value Lowering::kept(Value input, Type elementType) {
  if (!isNarrow(elementType))
    return input;
  return elementwise(cast<RankedTensorType>(input.getType()), input,
                     [&](ImplicitLocOpBuilder &inner, ValueRange in) {
                       return SmallVector<Value>{
                           wrapped(inner, in[0], elementType)};
                     });
}

Value Lowering::computed(RankedTensorType type, IndexedBuilder body) {
  return elementwise(type, {}, [&](ImplicitLocOpBuilder &inner, ValueRange) {
    SmallVector<Value> indices;
    for (int64_t k = 0; k < type.getRank(); ++k)
      indices.push_back(linalg::IndexOp::create(inner, k));
    return SmallVector<Value>{body(inner, indices)};
  });
}

Value Lowering::transposed(Value input, ArrayRef<int64_t> order) {
  return transposedTensor(b, b.getLoc(), input, order);
}

Value Lowering::reshaped(Value input, ArrayRef<int64_t> shape) {
  return reshapedTensor(b, b.getLoc(), input, shape);
}

static SmallVector<OpFoldResult> attributes(OpBuilder &b,
                                            ArrayRef<int64_t> numbers) {
  return llvm::map_to_vector(numbers, [&](int64_t number) -> OpFoldResult {
    return b.getIndexAttr(number);
  });
}

Value Lowering::sliced(Value input, ArrayRef<int64_t> offsets,
                       ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getShape() == sizes)
    return input;
  return tensor::ExtractSliceOp::create(
      b, type.clone(sizes), input, attributes(b, offsets), attributes(b, sizes),
      attributes(b, strides));
}

Value Lowering::padded(Value input,
                       llvm::function_ref<Value(RankedTensorType)> fill,
                       ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                       ArrayRef<int64_t> interior) {
  auto type = cast<RankedTensorType>(input.getType());
  unsigned rank = type.getRank();
  SmallVector<int64_t> shape(rank), first(rank), count(rank), at(rank),
      step(rank), ones(rank, 1);
  for (unsigned k = 0; k < rank; ++k) {
    int64_t size = type.getDimSize(k);
    step[k] = interior[k] + 1;
    int64_t spread = size == 0 ? 0 : (size - 1) * step[k] + 1;
    shape[k] = std::max<int64_t>(0, spread + low[k] + high[k]);
    // Element i comes to low + i * step; the first and last that stay:
    first[k] = low[k] >= 0 ? 0 : (-low[k] + step[k] - 1) / step[k];
    int64_t last = shape[k] - 1 - low[k] < 0
                       ? -1
                       : std::min(size - 1, (shape[k] - 1 - low[k]) / step[k]);
    count[k] = std::max<int64_t>(0, last - first[k] + 1);
    at[k] = low[k] + first[k] * step[k];
  }
  RankedTensorType made = type.clone(shape);
  if (llvm::is_contained(count, 0))
    return fill(made);
  Value kept = sliced(input, first, count, ones);
  if (count == shape)
    return kept;
  return tensor::InsertSliceOp::create(b, kept, fill(made), attributes(b, at),
                                       attributes(b, count),
                                       attributes(b, step));
}

Value Lowering::reversed(Value input, ArrayRef<int64_t> dimensions) {
  auto type = cast<RankedTensorType>(input.getType());
  if (dimensions.empty())
    return input;
  return computed(type, [&](ImplicitLocOpBuilder &inner, ValueRange point) {
    SmallVector<Value> from = llvm::to_vector(point);
    for (int64_t k : dimensions) {
      Value last =
          arith::ConstantIndexOp::create(inner, type.getDimSize(k) - 1);
      from[k] = arith::SubIOp::create(inner, last, point[k]);
    }
    return tensor::ExtractOp::create(inner, input, from);
  });
}

} // namespace mgpu::conversion
