// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic, comparisons and bits. Where the specification leaves a result to
// the implementation (division by zero), it is XLA's.
#include "dialect/conversion/stablehlo/Scalars.h"

#include "llvm/ADT/StringSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

Value Scalar::constant(Type type, double value) const {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, int64_t(value)));
}

Value Scalar::bits(const llvm::APInt &value) const {
  return arith::ConstantOp::create(b, b.getIntegerAttr(type(), value));
}

namespace {

/// One operation for each kind of number.
template <typename Float, typename Integer, typename Bool = Integer>
Value either(const Scalar &s) {
  if (s.isFloat())
    return Float::create(s.b, s.in[0], s.in[1]);
  if (s.isBool())
    return Bool::create(s.b, s.in[0], s.in[1]);
  return Integer::create(s.b, s.in[0], s.in[1]);
}

template <typename Float, typename Signed, typename Unsigned, typename Bool>
Value larger(const Scalar &s) {
  if (!s.isFloat() && !s.isBool() && isUnsigned(s.from()))
    return Unsigned::create(s.b, s.in[0], s.in[1]);
  return either<Float, Signed, Bool>(s);
}

template <typename Op>
Value integers(const Scalar &s) {
  return Op::create(s.b, s.in[0], s.in[1]);
}

Value isEqual(const Scalar &s, Value a, Value b) {
  return arith::CmpIOp::create(s.b, arith::CmpIPredicate::eq, a, b);
}

Value choose(const Scalar &s, Value condition, Value yes, Value no) {
  return arith::SelectOp::create(s.b, condition, yes, no);
}

/// Whether dividing in[0] by in[1] leaves the type: INT_MIN / -1.
Value overflows(const Scalar &s) {
  Value least = s.bits(llvm::APInt::getSignedMinValue(s.width()));
  return arith::AndIOp::create(
      s.b, isEqual(s, s.in[0], least),
      isEqual(s, s.in[1], s.bits(llvm::APInt::getAllOnes(s.width()))));
}

/// x / 0 is -1, all bits set; INT_MIN / -1 is INT_MIN.
Value divide(const Scalar &s) {
  if (s.isFloat())
    return arith::DivFOp::create(s.b, s.in[0], s.in[1]);
  Value isZero = isEqual(s, s.in[1], s.constant(0));
  Value one = s.bits(llvm::APInt(s.width(), 1));
  Value ones = s.bits(llvm::APInt::getAllOnes(s.width()));
  if (isUnsigned(s.from())) {
    Value safe = choose(s, isZero, one, s.in[1]);
    Value quotient = arith::DivUIOp::create(s.b, s.in[0], safe);
    return choose(s, isZero, ones, quotient);
  }
  Value unsafe = arith::OrIOp::create(s.b, isZero, overflows(s));
  Value safe = choose(s, unsafe, one, s.in[1]);
  Value quotient = arith::DivSIOp::create(s.b, s.in[0], safe);
  return choose(s, isZero, ones, quotient);
}

/// x % 0 is x; the sign is that of x.
Value remainder(const Scalar &s) {
  if (s.isFloat())
    return arith::RemFOp::create(s.b, s.in[0], s.in[1]);
  Value isZero = isEqual(s, s.in[1], s.constant(0));
  Value one = s.bits(llvm::APInt(s.width(), 1));
  Value result;
  if (isUnsigned(s.from())) {
    Value safe = choose(s, isZero, one, s.in[1]);
    result = arith::RemUIOp::create(s.b, s.in[0], safe);
  } else {
    Value unsafe = arith::OrIOp::create(s.b, isZero, overflows(s));
    Value safe = choose(s, unsafe, one, s.in[1]);
    result = arith::RemSIOp::create(s.b, s.in[0], safe);
  }
  return choose(s, isZero, s.in[0], result);
}

/// By squaring, up to the highest bit of the exponent: one trip of a loop for
/// each, as LLVM's vectorizer takes time without end for a row of squares of
/// one number. A negative power of 1 and -1 is one of these, of another number
/// its reciprocal without the fraction: 0.
Value powerOfInteger(const Scalar &s) {
  Value one = s.bits(llvm::APInt(s.width(), 1)), zero = s.constant(0);
  Value width = s.bits(llvm::APInt(s.width(), s.width()));
  Value unused = math::CountLeadingZerosOp::create(s.b, s.in[1]);
  Value trips = arith::IndexCastUIOp::create(
      s.b, s.b.getIndexType(), arith::SubIOp::create(s.b, width, unused));
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(s.b, value);
  };
  auto square = [&](OpBuilder &nested, Location at, Value, ValueRange now) {
    ImplicitLocOpBuilder b(at, nested);
    Value odd = arith::AndIOp::create(b, now[2], one);
    Value isSet = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, odd, zero);
    Value product = arith::MulIOp::create(b, now[0], now[1]);
    scf::YieldOp::create(
        b, ValueRange{arith::SelectOp::create(b, isSet, product, now[0]),
                      arith::MulIOp::create(b, now[1], now[1]),
                      arith::ShRUIOp::create(b, now[2], one)});
  };
  Value power = scf::ForOp::create(s.b, index(0), trips, index(1),
                                   ValueRange{one, s.in[0], s.in[1]}, square)
                    .getResult(0);
  if (isUnsigned(s.from()))
    return power;
  Value minus = s.bits(llvm::APInt::getAllOnes(s.width()));
  Value isNegative =
      arith::CmpIOp::create(s.b, arith::CmpIPredicate::slt, s.in[1], zero);
  Value odd = isEqual(s, arith::AndIOp::create(s.b, s.in[1], one), one);
  Value ofMinus = choose(s, odd, minus, one);
  Value small = choose(s, isEqual(s, s.in[0], minus), ofMinus, zero);
  small = choose(s, isEqual(s, s.in[0], one), one, small);
  return choose(s, isNegative, small, power);
}

Value power(const Scalar &s) {
  if (!s.isFloat())
    return powerOfInteger(s);
  return math::PowFOp::create(s.b, s.in[0], s.in[1]);
}

/// Bits that are shifted past the width are lost.
template <typename Op>
Value shift(const Scalar &s) {
  Value width = s.bits(llvm::APInt(s.width(), s.width()));
  Value fits =
      arith::CmpIOp::create(s.b, arith::CmpIPredicate::ult, s.in[1], width);
  constexpr bool keepsSign = std::is_same_v<Op, arith::ShRSIOp>;
  Value most = s.bits(llvm::APInt(s.width(), s.width() - 1));
  Value amount = choose(s, fits, s.in[1], keepsSign ? most : s.constant(0));
  Value shifted = Op::create(s.b, s.in[0], amount);
  return keepsSign ? shifted : choose(s, fits, shifted, s.constant(0));
}

Value negate(const Scalar &s) {
  if (s.isFloat())
    return arith::NegFOp::create(s.b, s.in[0]);
  return arith::SubIOp::create(s.b, s.constant(0), s.in[0]);
}

Value absolute(const Scalar &s) {
  if (s.isFloat())
    return math::AbsFOp::create(s.b, s.in[0]);
  if (isUnsigned(s.from()))
    return s.in[0];
  return arith::MaxSIOp::create(s.b, s.in[0], negate(s));
}

Value invert(const Scalar &s) {
  return arith::XOrIOp::create(s.b, s.in[0],
                               s.bits(llvm::APInt::getAllOnes(s.width())));
}

/// NaN and both zeros are their own signs.
Value sign(const Scalar &s) {
  if (s.isFloat()) {
    Value one = math::CopySignOp::create(s.b, s.constant(1), s.in[0]);
    Value differs = arith::CmpFOp::create(s.b, arith::CmpFPredicate::ONE,
                                          s.in[0], s.constant(0));
    return choose(s, differs, one, s.in[0]);
  }
  Value one = s.bits(llvm::APInt(s.width(), 1)), zero = s.constant(0);
  Value minus = s.bits(llvm::APInt::getAllOnes(s.width()));
  Value isLess =
      arith::CmpIOp::create(s.b, arith::CmpIPredicate::slt, s.in[0], zero);
  if (isUnsigned(s.from()))
    minus = one;
  return choose(s, isEqual(s, s.in[0], zero), zero,
                choose(s, isLess, minus, one));
}

Value select(const Scalar &s) { return choose(s, s.in[0], s.in[1], s.in[2]); }

/// The lower bound first, then the upper one.
Value clamp(const Scalar &s) {
  Value x = s.in[1];
  if (s.isFloat()) {
    x = arith::MaximumFOp::create(s.b, s.in[0], x);
    return arith::MinimumFOp::create(s.b, x, s.in[2]);
  }
  if (isUnsigned(s.from())) {
    x = arith::MaxUIOp::create(s.b, s.in[0], x);
    return arith::MinUIOp::create(s.b, x, s.in[2]);
  }
  x = arith::MaxSIOp::create(s.b, s.in[0], x);
  return arith::MinSIOp::create(s.b, x, s.in[2]);
}

} // namespace

llvm::ArrayRef<NamedScalar> arithmeticScalars() {
  using namespace arith;
  static const NamedScalar all[] = {
      {"stablehlo.add", either<AddFOp, AddIOp, OrIOp>},
      {"stablehlo.subtract", either<SubFOp, SubIOp, XOrIOp>},
      {"stablehlo.multiply", either<MulFOp, MulIOp, AndIOp>},
      {"stablehlo.divide", divide},
      {"stablehlo.remainder", remainder},
      {"stablehlo.power", power},
      {"stablehlo.maximum", larger<MaximumFOp, MaxSIOp, MaxUIOp, OrIOp>},
      {"stablehlo.minimum", larger<MinimumFOp, MinSIOp, MinUIOp, AndIOp>},
      {"stablehlo.and", integers<AndIOp>},
      {"stablehlo.or", integers<OrIOp>},
      {"stablehlo.xor", integers<XOrIOp>},
      {"stablehlo.not", invert},
      {"stablehlo.shift_left", shift<ShLIOp>},
      {"stablehlo.shift_right_logical", shift<ShRUIOp>},
      {"stablehlo.shift_right_arithmetic", shift<ShRSIOp>},
      {"stablehlo.negate", negate},
      {"stablehlo.abs", absolute},
      {"stablehlo.sign", sign},
      {"stablehlo.popcnt", unary<math::CtPopOp>},
      {"stablehlo.count_leading_zeros", unary<math::CountLeadingZerosOp>},
      {"stablehlo.select", select},
      {"stablehlo.clamp", clamp},
  };
  return all;
}

} // namespace mgpu::conversion
