// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of elementwise operations. That shapes are equal is a trait.
#include "dialect/stablehlo/StablehloRules.h"

using namespace mlir;
using namespace mgpu::stablehlo;

/// All operands and results have one element type.
static LogicalResult checkElements(Operation *op) {
  Type element = elementOf(op->getResult(0));
  for (Value operand : op->getOperands())
    if (!elementsAgree(elementOf(operand), element))
      return op->emitOpError()
             << "must have operands and a result of one element type, not "
             << elementOf(operand) << " and " << element;
  return success();
}

#define MGPU_ONE_ELEMENT_TYPE(OP)                                              \
  LogicalResult OP::verify() { return checkElements(*this); }
MGPU_ONE_ELEMENT_TYPE(AddOp)
MGPU_ONE_ELEMENT_TYPE(AndOp)
MGPU_ONE_ELEMENT_TYPE(Atan2Op)
MGPU_ONE_ELEMENT_TYPE(CbrtOp)
MGPU_ONE_ELEMENT_TYPE(CeilOp)
MGPU_ONE_ELEMENT_TYPE(ClzOp)
MGPU_ONE_ELEMENT_TYPE(CosineOp)
MGPU_ONE_ELEMENT_TYPE(DivOp)
MGPU_ONE_ELEMENT_TYPE(ExpOp)
MGPU_ONE_ELEMENT_TYPE(Expm1Op)
MGPU_ONE_ELEMENT_TYPE(FloorOp)
MGPU_ONE_ELEMENT_TYPE(Log1pOp)
MGPU_ONE_ELEMENT_TYPE(LogOp)
MGPU_ONE_ELEMENT_TYPE(LogisticOp)
MGPU_ONE_ELEMENT_TYPE(MaxOp)
MGPU_ONE_ELEMENT_TYPE(MinOp)
MGPU_ONE_ELEMENT_TYPE(MulOp)
MGPU_ONE_ELEMENT_TYPE(NegOp)
MGPU_ONE_ELEMENT_TYPE(NotOp)
MGPU_ONE_ELEMENT_TYPE(OrOp)
MGPU_ONE_ELEMENT_TYPE(PopulationCountOp)
MGPU_ONE_ELEMENT_TYPE(PowOp)
MGPU_ONE_ELEMENT_TYPE(RemOp)
MGPU_ONE_ELEMENT_TYPE(RoundNearestEvenOp)
MGPU_ONE_ELEMENT_TYPE(RoundOp)
MGPU_ONE_ELEMENT_TYPE(RsqrtOp)
MGPU_ONE_ELEMENT_TYPE(ShiftLeftOp)
MGPU_ONE_ELEMENT_TYPE(ShiftRightArithmeticOp)
MGPU_ONE_ELEMENT_TYPE(ShiftRightLogicalOp)
MGPU_ONE_ELEMENT_TYPE(SignOp)
MGPU_ONE_ELEMENT_TYPE(SineOp)
MGPU_ONE_ELEMENT_TYPE(SqrtOp)
MGPU_ONE_ELEMENT_TYPE(SubtractOp)
MGPU_ONE_ELEMENT_TYPE(TanOp)
MGPU_ONE_ELEMENT_TYPE(TanhOp)
MGPU_ONE_ELEMENT_TYPE(XorOp)
#undef MGPU_ONE_ELEMENT_TYPE

/// The type of the parts of `type`, where it is complex.
static Type partOf(Type type) {
  auto complex = dyn_cast<ComplexType>(type);
  return complex ? complex.getElementType() : type;
}

/// The result is the type of a complex operand's parts.
static LogicalResult checkPart(Operation *op) {
  Type part = partOf(elementOf(op->getOperand(0)));
  if (elementsAgree(elementOf(op->getResult(0)), part))
    return success();
  return op->emitOpError() << "must give elements of type " << part;
}
LogicalResult AbsOp::verify() { return checkPart(*this); }
LogicalResult RealOp::verify() { return checkPart(*this); }
LogicalResult ImagOp::verify() { return checkPart(*this); }

LogicalResult ComplexOp::verify() {
  Type part = partOf(elementOf(getResult()));
  if (elementOf(getLhs()) == part && elementOf(getRhs()) == part)
    return success();
  return emitOpError() << "must have operands of type " << part;
}

LogicalResult ReducePrecisionOp::verify() {
  if (int32_t(getExponentBits()) < 1)
    return emitOpError() << "must keep an exponent bit at least";
  if (int32_t(getMantissaBits()) < 0)
    return emitOpError() << "must not have fewer than 0 mantissa bits";
  return checkElements(*this);
}

LogicalResult CompareOp::verify() {
  if (elementsAgree(elementOf(getLhs()), elementOf(getRhs())))
    return success();
  return emitOpError() << "must compare elements of one type, not "
                       << elementOf(getLhs()) << " and " << elementOf(getRhs());
}

/// Whether `value` is a scalar, or has the shape of `other`.
static LogicalResult checkScalarOr(Operation *op, StringRef name, Value value,
                                   Value other) {
  if (shapeOf(value).empty() || shapesAgree(shapeOf(value), shapeOf(other)))
    return success();
  return op->emitOpError() << name << " must be a scalar, or of the shape of "
                           << other.getType() << ", not " << value.getType();
}

LogicalResult ClampOp::verify() {
  if (failed(checkScalarOr(*this, "min", getMin(), getOperand())) ||
      failed(checkScalarOr(*this, "max", getMax(), getOperand())) ||
      failed(checkElements(*this)))
    return failure();
  return checkResult(*this, getResult(), shapeOf(getOperand()));
}

LogicalResult SelectOp::verify() {
  if (!shapesAgree(shapeOf(getOnTrue()), shapeOf(getOnFalse())) ||
      !elementsAgree(elementOf(getOnTrue()), elementOf(getOnFalse())))
    return emitOpError() << "must choose between values of one type, not "
                         << getOnTrue().getType() << " and "
                         << getOnFalse().getType();
  if (failed(checkScalarOr(*this, "pred", getPred(), getOnTrue())))
    return failure();
  return checkResult(*this, getResult(), shapeOf(getOnTrue()),
                     elementOf(getOnTrue()));
}

LogicalResult ConstantOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  if (type && shapesAgree(type.getShape(), shapeOf(getOutput())) &&
      elementsAgree(type.getElementType(), elementOf(getOutput())))
    return success();
  return emitOpError() << "must give " << getValue().getType() << ", not "
                       << getOutput().getType();
}

// Rules of operations that make, move and cut tensors.

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
