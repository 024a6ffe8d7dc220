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
