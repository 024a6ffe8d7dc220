// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one type to another, and comparisons, which depend on types as well.
#include "dialect/conversion/stablehlo/Scalars.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;

Value totalOrder(ImplicitLocOpBuilder &b, Value value) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Type type = b.getIntegerType(width);
  Value bits = arith::BitcastOp::create(b, type, value);
  auto constant = [&](const llvm::APInt &number) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, number));
  };
  Value sign =
      arith::ShRSIOp::create(b, bits, constant(llvm::APInt(width, width - 1)));
  Value flip = arith::AndIOp::create(
      b, sign, constant(llvm::APInt::getSignedMaxValue(width)));
  return arith::XOrIOp::create(b, bits, flip);
}

namespace {

Value convert(const Scalar &s) {
  return convertNumber(s.b, s.in[0], s.from(), s.to());
}

arith::CmpFPredicate floatPredicate(stablehlo::ComparisonDirection direction) {
  using Direction = stablehlo::ComparisonDirection;
  switch (direction) {
  case Direction::EQ:
    return arith::CmpFPredicate::OEQ;
  case Direction::NE:
    return arith::CmpFPredicate::UNE;
  case Direction::GE:
    return arith::CmpFPredicate::OGE;
  case Direction::GT:
    return arith::CmpFPredicate::OGT;
  case Direction::LE:
    return arith::CmpFPredicate::OLE;
  case Direction::LT:
    return arith::CmpFPredicate::OLT;
  }
  llvm_unreachable("a direction");
}

arith::CmpIPredicate integerPredicate(stablehlo::ComparisonDirection direction,
                                      bool hasSign) {
  using Direction = stablehlo::ComparisonDirection;
  using P = arith::CmpIPredicate;
  switch (direction) {
  case Direction::EQ:
    return P::eq;
  case Direction::NE:
    return P::ne;
  case Direction::GE:
    return hasSign ? P::sge : P::uge;
  case Direction::GT:
    return hasSign ? P::sgt : P::ugt;
  case Direction::LE:
    return hasSign ? P::sle : P::ule;
  case Direction::LT:
    return hasSign ? P::slt : P::ult;
  }
  llvm_unreachable("a direction");
}

Value compare(const Scalar &s) {
  auto op = cast<stablehlo::CompareOp>(s.op);
  stablehlo::ComparisonDirection direction = op.getComparisonDirection();
  bool isTotal = op.getCompareType() == stablehlo::ComparisonType::TOTALORDER;
  if (s.isFloat() && !isTotal)
    return arith::CmpFOp::create(s.b, floatPredicate(direction), s.in[0],
                                 s.in[1]);
  if (s.isFloat())
    return arith::CmpIOp::create(s.b, integerPredicate(direction, true),
                                 totalOrder(s.b, s.in[0]),
                                 totalOrder(s.b, s.in[1]));
  return arith::CmpIOp::create(
      s.b, integerPredicate(direction, !isUnsigned(s.from())), s.in[0],
      s.in[1]);
}

/// Between types of one width; the others change the shape (Movement.cpp).
Value bitcast(const Scalar &s) {
  Type to = signless(s.to());
  return to == s.type()
             ? s.in[0]
             : arith::BitcastOp::create(s.b, to, s.in[0]).getResult();
}

/// Rounds the mantissa to the nearest even, then takes what leaves the range of
/// the exponent to infinity or zero. NaN stays, as one that the format has.
Value reducePrecision(const Scalar &s) {
  auto op = cast<stablehlo::ReducePrecisionOp>(s.op);
  auto type = cast<FloatType>(s.type());
  unsigned width = type.getWidth(), mantissa = type.getFPMantissaWidth() - 1;
  unsigned exponent = width - mantissa - 1;
  unsigned keep = op.getMantissaBits(), range = op.getExponentBits();
  Type integer = s.b.getIntegerType(width);
  auto constant = [&](const llvm::APInt &number) -> Value {
    return arith::ConstantOp::create(s.b, s.b.getIntegerAttr(integer, number));
  };
  auto number = [&](uint64_t of) { return constant(llvm::APInt(width, of)); };
  auto compare = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
    return arith::CmpIOp::create(s.b, how, x, y);
  };
  Value bits = arith::BitcastOp::create(s.b, integer, s.in[0]);
  llvm::APInt signBit = llvm::APInt::getSignMask(width);
  Value sign = arith::AndIOp::create(s.b, bits, constant(signBit));
  Value size = arith::AndIOp::create(s.b, bits, constant(~signBit));
  if (keep < mantissa) {
    unsigned drop = mantissa - keep;
    Value last = arith::AndIOp::create(
        s.b, arith::ShRUIOp::create(s.b, size, number(drop)), number(1));
    Value half = number((uint64_t(1) << (drop - 1)) - 1);
    Value up = arith::AddIOp::create(s.b, half, last);
    size = arith::AddIOp::create(s.b, size, up);
    size = arith::AndIOp::create(
        s.b, size, constant(~llvm::APInt::getLowBitsSet(width, drop)));
  }
  Value infinity =
      constant(llvm::APInt::getBitsSet(width, mantissa, width - 1));
  if (range < exponent) {
    uint64_t bias = (uint64_t(1) << (exponent - 1)) - 1;
    uint64_t newBias = (uint64_t(1) << (range - 1)) - 1;
    Value field = arith::ShRUIOp::create(s.b, size, number(mantissa));
    Value isOver =
        compare(arith::CmpIPredicate::ugt, field, number(bias + newBias));
    Value isUnder =
        compare(arith::CmpIPredicate::ule, field, number(bias - newBias));
    size = arith::SelectOp::create(s.b, isOver, infinity, size);
    size = arith::SelectOp::create(s.b, isUnder, number(0), size);
  }
  Value made = arith::BitcastOp::create(
      s.b, type, arith::OrIOp::create(s.b, sign, size).getResult());
  Value isNan =
      arith::CmpFOp::create(s.b, arith::CmpFPredicate::UNO, s.in[0], s.in[0]);
  Value ofNan = s.in[0];
  if (keep == 0) // such a format has no NaN
    ofNan = arith::BitcastOp::create(
        s.b, type, arith::OrIOp::create(s.b, sign, infinity).getResult());
  return arith::SelectOp::create(s.b, isNan, ofNan, made);
}

} // namespace

llvm::ArrayRef<NamedScalar> conversionScalars() {
  static const NamedScalar all[] = {
      {"stablehlo.convert", convert},
      {"stablehlo.compare", compare},
      {"stablehlo.bitcast_convert", bitcast},
      {"stablehlo.reduce_precision", reducePrecision},
  };
  return all;
}

ScalarBuilder findScalarBuilder(OperationName name) {
  static const llvm::StringMap<ScalarBuilder> all = [] {
    llvm::StringMap<ScalarBuilder> map;
    for (auto table : {arithmeticScalars(), functionScalars(),
                       conversionScalars(), chloScalars()})
      for (const NamedScalar &each : table)
        map[each.name] = each.build;
    return map;
  }();
  return all.lookup(name.getStringRef());
}

Value applied(ScalarBuilder build, const Scalar &scalar) {
  return wrapped(scalar.b, build(scalar), scalar.to());
}

// Element types of the source, what they are in memory, and numbers of one as
// those of another.

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
