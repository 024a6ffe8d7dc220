// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of operations that make, move and cut tensors.
#include "dialect/stablehlo/StablehloRules.h"

using namespace mlir;
using namespace mgpu::stablehlo;

LogicalResult IotaOp::verify() {
  return checkDims(*this, "dim", {int64_t(getIotaDimension())},
                   shapeOf(getOutput()).size());
}

/// The bits of an element; a complex number has two parts.
static int64_t bitsOf(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * bitsOf(complex.getElementType());
  if (auto quantized = dyn_cast<quant::QuantizedType>(element))
    return quantized.getStorageTypeIntegralWidth();
  return element.getIntOrFloatBitWidth();
}

LogicalResult BitcastConvertOp::verify() {
  Type from = elementOf(getOperand()), to = elementOf(getResult());
  if (isa<ComplexType>(from) != isa<ComplexType>(to))
    return emitOpError() << "cannot convert between complex and other numbers";
  int64_t fromBits = bitsOf(from), toBits = bitsOf(to);
  ArrayRef<int64_t> wide = shapeOf(getOperand()), narrow = shapeOf(getResult());
  if (fromBits == toBits)
    return checkResult(*this, getResult(), wide);
  if (fromBits < toBits) {
    std::swap(wide, narrow);
    std::swap(fromBits, toBits);
  }
  if (narrow.size() == wide.size() + 1 && fromBits % toBits == 0 &&
      sizesAgree(narrow.back(), fromBits / toBits) &&
      shapesAgree(narrow.drop_back(), wide))
    return success();
  return emitOpError() << "cannot see " << getOperand().getType() << " as "
                       << getResult().getType();
}

LogicalResult BroadcastInDimOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  if (!cast<ShapedType>(getResult().getType()).hasStaticShape())
    return emitOpError() << "must give a tensor of static shape";
  if (failed(checkCount(*this, "dims", dims.size(), from.size())) ||
      failed(checkDims(*this, "dims", dims, to.size())))
    return failure();
  for (auto [index, dim] : llvm::enumerate(dims))
    if (from[index] != 1 && !sizesAgree(from[index], to[dim]))
      return emitOpError() << "cannot repeat dimension " << index << " of "
                           << getOperand().getType() << " to the size "
                           << to[dim];
  return checkResult(*this, getResult(), to, elementOf(getOperand()));
}

LogicalResult BroadcastOp::verify() {
  Shape shape(getBroadcastSizes());
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return emitOpError() << "must have sizes that are not negative";
  llvm::append_range(shape, shapeOf(getOperand()));
  return checkResult(*this, getResult(), shape, elementOf(getOperand()));
}

LogicalResult ConcatenateOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "must have an operand at least";
  Shape shape(shapeOf(getInputs()[0]));
  int64_t dim = getDimension();
  if (failed(checkDims(*this, "dim", {dim}, shape.size())))
    return failure();
  for (Value input : getInputs().drop_front()) {
    ArrayRef<int64_t> other = shapeOf(input);
    bool fits = other.size() == shape.size() &&
                elementsAgree(elementOf(input), elementOf(getInputs()[0]));
    for (size_t each = 0; fits && each < shape.size(); ++each)
      fits = int64_t(each) == dim || sizesAgree(other[each], shape[each]);
    if (!fits)
      return emitOpError() << "cannot concatenate " << getInputs()[0].getType()
                           << " and " << input.getType() << " along dimension "
                           << dim;
    shape[dim] = isDynamic(shape[dim]) || isDynamic(other[dim])
                     ? ShapedType::kDynamic
                     : shape[dim] + other[dim];
  }
  return checkResult(*this, getResult(), shape, elementOf(getInputs()[0]));
}

/// Checks that there are as many scalar indices of one type as a tensor of rank
/// `rank` has dimensions.
static LogicalResult checkStarts(Operation *op, ValueRange starts,
                                 size_t rank) {
  if (failed(checkCount(op, "start indices", starts.size(), rank)))
    return failure();
  for (Value start : starts) {
    if (failed(checkScalar(op, "a start index", start)))
      return failure();
    if (elementOf(start) != elementOf(starts[0]))
      return op->emitOpError() << "must have start indices of one type";
  }
  return success();
}

/// Each of `sizes` is from 0 to that of `shape`.
static LogicalResult checkPart(Operation *op, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> shape) {
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(sizes, shape))) {
    auto [size, all] = pair;
    if (isDynamic(size) || (size >= 0 && (isDynamic(all) || size <= all)))
      continue;
    return op->emitOpError() << "cannot take " << size << " of " << all
                             << " elements of dimension " << dim;
  }
  return success();
}

LogicalResult DynamicSliceOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getOperand());
  if (failed(checkStarts(*this, getStartIndices(), shape.size())) ||
      failed(
          checkCount(*this, "sizes", getSliceSizes().size(), shape.size())) ||
      failed(checkPart(*this, getSliceSizes(), shape)))
    return failure();
  return checkResult(*this, getResult(), getSliceSizes(),
                     elementOf(getOperand()));
}

LogicalResult DynamicUpdateSliceOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getOperand());
  ArrayRef<int64_t> update = shapeOf(getUpdate());
  if (failed(checkStarts(*this, getStartIndices(), shape.size())))
    return failure();
  if (update.size() != shape.size() ||
      !elementsAgree(elementOf(getUpdate()), elementOf(getOperand())))
    return emitOpError() << "cannot put " << getUpdate().getType() << " into "
                         << getOperand().getType();
  if (failed(checkPart(*this, update, shape)))
    return failure();
  return checkResult(*this, getResult(), shape, elementOf(getOperand()));
}

LogicalResult GetDimensionSizeOp::verify() {
  if (failed(checkScalar(*this, "the result", getResult())))
    return failure();
  return checkDims(*this, "dim", {int64_t(getDimension())},
                   shapeOf(getOperand()).size());
}

LogicalResult PadOp::verify() {
  Shape shape(shapeOf(getOperand()));
  if (failed(checkScalar(*this, "the padding value", getPaddingValue())) ||
      failed(
          checkCount(*this, "low", getEdgePaddingLow().size(), shape.size())) ||
      failed(checkCount(*this, "high", getEdgePaddingHigh().size(),
                        shape.size())) ||
      failed(checkCount(*this, "interior", getInteriorPadding().size(),
                        shape.size())))
    return failure();
  if (!elementsAgree(elementOf(getPaddingValue()), elementOf(getOperand())))
    return emitOpError() << "must have a padding value of type "
                         << elementOf(getOperand());
  for (auto [size, low, high, interior] :
       llvm::zip(shape, getEdgePaddingLow(), getEdgePaddingHigh(),
                 getInteriorPadding())) {
    if (interior < 0)
      return emitOpError() << "must have interior padding that is not negative";
    if (isDynamic(size))
      continue;
    __int128 sum = __int128(size > 1 ? size - 1 : 0) * interior + size;
    sum += __int128(low) + high;
    if (sum < 0 || sum > INT64_MAX)
      return emitOpError() << "pads a dimension of " << size
                           << " elements to a size that is not possible";
    size = sum;
  }
  return checkResult(*this, getResult(), shape, elementOf(getOperand()));
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<ShapedType>(getOperand().getType());
  auto to = cast<ShapedType>(getResult().getType());
  if (!to.hasStaticShape())
    return emitOpError() << "must give a tensor of static shape";
  if (from.hasStaticShape() && from.getNumElements() != to.getNumElements())
    return emitOpError() << "must keep the number of elements: " << from
                         << " has " << from.getNumElements() << ", " << to
                         << " has " << to.getNumElements();
  return checkResult(*this, getResult(), to.getShape(), from.getElementType());
}

LogicalResult ReverseOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getOperand());
  if (failed(checkDims(*this, "dims", getDimensions(), shape.size())))
    return failure();
  return checkResult(*this, getResult(), shape, elementOf(getOperand()));
}

LogicalResult SliceOp::verify() {
  Shape shape(shapeOf(getOperand()));
  if (failed(checkCount(*this, "start indices", getStartIndices().size(),
                        shape.size())) ||
      failed(checkCount(*this, "limit indices", getLimitIndices().size(),
                        shape.size())) ||
      failed(checkCount(*this, "strides", getStrides().size(), shape.size())))
    return failure();
  for (auto [dim, range] : llvm::enumerate(llvm::zip(
           getStartIndices(), getLimitIndices(), getStrides(), shape))) {
    auto [start, limit, stride, size] = range;
    if (start < 0 || start > limit || stride < 1 ||
        (!isDynamic(size) && limit > size))
      return emitOpError() << "cannot take " << start << ':' << limit << ':'
                           << stride << " of dimension " << dim << " of "
                           << getOperand().getType();
    size = (limit - start) / stride + ((limit - start) % stride != 0);
  }
  return checkResult(*this, getResult(), shape, elementOf(getOperand()));
}

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getOperand());
  if (failed(
          checkCount(*this, "dims", getPermutation().size(), shape.size())) ||
      failed(checkDims(*this, "dims", getPermutation(), shape.size())))
    return failure();
  Shape result = llvm::map_to_vector(getPermutation(),
                                     [&](int64_t dim) { return shape[dim]; });
  return checkResult(*this, getResult(), result, elementOf(getOperand()));
}
