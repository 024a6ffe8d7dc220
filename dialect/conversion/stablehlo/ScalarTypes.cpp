// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of the source, what they are in memory, and numbers of one as
// those of another.
#include "dialect/conversion/stablehlo/Scalars.h"

namespace mgpu::conversion {

using namespace mlir;

Type signless(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(signless(tensor.getElementType()));
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || (integer.isSignless() && !isNarrow(type)))
    return type;
  return IntegerType::get(type.getContext(),
                          isNarrow(type) ? 8 : integer.getWidth());
}

bool isNarrow(Type elementType) {
  return elementType.isInteger() && !elementType.isInteger(1) &&
         elementType.getIntOrFloatBitWidth() < 8;
}

bool isUnsigned(Type elementType) {
  return elementType.isUnsignedInteger() || elementType.isInteger(1);
}

llvm::APInt inMemory(const llvm::APInt &number, Type elementType) {
  if (!isNarrow(elementType))
    return number;
  return isUnsigned(elementType) ? number.zext(8) : number.sext(8);
}

Value wrapped(ImplicitLocOpBuilder &b, Value number, Type elementType) {
  if (!isNarrow(elementType))
    return number;
  const unsigned width = elementType.getIntOrFloatBitWidth();
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(number.getType(), int64_t(value)));
  };
  if (isUnsigned(elementType))
    return arith::AndIOp::create(b, number, constant((1u << width) - 1));
  Value unused = constant(8 - width);
  return arith::ShRSIOp::create(
      b, arith::ShLIOp::create(b, number, unused).getResult(), unused);
}

Value castFloat(ImplicitLocOpBuilder &b, Value value, Type to) {
  Type from = value.getType();
  if (from == to)
    return value;
  unsigned have = from.getIntOrFloatBitWidth();
  unsigned want = to.getIntOrFloatBitWidth();
  if (have < want)
    return arith::ExtFOp::create(b, to, value);
  if (have > want)
    return arith::TruncFOp::create(b, to, value);
  // Two of one width, as f16 and bf16: through one that holds both.
  return castFloat(b, castFloat(b, value, b.getF32Type()), to);
}

static Value castInteger(ImplicitLocOpBuilder &b, Value value, Type from,
                         Type to) {
  unsigned have = value.getType().getIntOrFloatBitWidth();
  unsigned want = to.getIntOrFloatBitWidth();
  if (have == want)
    return value;
  if (have > want)
    return arith::TruncIOp::create(b, to, value);
  if (isUnsigned(from))
    return arith::ExtUIOp::create(b, to, value);
  return arith::ExtSIOp::create(b, to, value);
}

/// The nearest number that the integer type has, and 0 of NaN. The bounds are
/// powers of two, or that less one where the float type has it.
static Value floatToInteger(ImplicitLocOpBuilder &b, Value value, Type to) {
  auto type = cast<FloatType>(value.getType());
  if (type.getWidth() < 32) // bounds of i64 are beyond f16
    return floatToInteger(b, castFloat(b, value, b.getF32Type()), to);
  unsigned width = to.getIntOrFloatBitWidth();
  bool hasSign = !isUnsigned(to);
  Type made = signless(to);
  auto bound = [&](const llvm::APInt &edge) {
    llvm::APFloat number(type.getFloatSemantics());
    number.convertFromAPInt(edge, true, llvm::APFloat::rmNearestTiesToEven);
    return arith::ConstantOp::create(b, b.getFloatAttr(type, number));
  };
  unsigned exponent = hasSign ? width - 1 : width;
  llvm::APInt over = llvm::APInt::getOneBitSet(width + 2, exponent);
  llvm::APInt under = hasSign ? -over : llvm::APInt(width + 2, 0);
  Value least = bound(under), most = bound(over);
  Value isUnder =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, value, least);
  Value isOver =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, value, most);
  Value isNan =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value isOut =
      arith::OrIOp::create(b, arith::OrIOp::create(b, isUnder, isOver), isNan);
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(type, 0.0));
  Value safe = arith::SelectOp::create(b, isOut, zero, value);
  Value number = hasSign ? arith::FPToSIOp::create(b, made, safe).getResult()
                         : arith::FPToUIOp::create(b, made, safe).getResult();
  auto integer = [&](const llvm::APInt &edge) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(made, inMemory(edge, to)));
  };
  number = arith::SelectOp::create(
      b, isUnder,
      integer(hasSign ? llvm::APInt::getSignedMinValue(width)
                      : llvm::APInt::getZero(width)),
      number);
  return arith::SelectOp::create(
      b, isOver,
      integer(hasSign ? llvm::APInt::getSignedMaxValue(width)
                      : llvm::APInt::getMaxValue(width)),
      number);
}

Value convertNumber(ImplicitLocOpBuilder &b, Value value, Type from, Type to) {
  Type made = signless(to);
  bool isFloat = isa<FloatType>(from);
  if (to.isInteger(1)) { // whether it is another number than 0
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
    if (isFloat)
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (isFloat && isa<FloatType>(to))
    return castFloat(b, value, to);
  if (isFloat)
    return floatToInteger(b, value, to);
  if (!isa<FloatType>(to))
    return castInteger(b, value, from, made);
  if (isUnsigned(from))
    return arith::UIToFPOp::create(b, made, value);
  return arith::SIToFPOp::create(b, made, value);
}

} // namespace mgpu::conversion
