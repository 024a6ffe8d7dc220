// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of chlo. Log gamma and its derivative of f32 are computed in f64,
// as they cancel near their zeros and poles.
#include "dialect/conversion/stablehlo/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

namespace mgpu::conversion {

using namespace mlir;

namespace {

// Formulas of floats as C++ writes them.

/// A float of a kernel; numbers take its type.
struct Real {
  ImplicitLocOpBuilder *b;
  Value value;

  Real of(double number) const {
    return {b, arith::ConstantOp::create(
                   *b, b->getFloatAttr(value.getType(), number))};
  }
  template <typename Op>
  Real apply() const {
    return {b, Op::create(*b, value)};
  }
  template <typename Op>
  Real with(Real y) const {
    return {b, Op::create(*b, value, y.value)};
  }
  Value compare(arith::CmpFPredicate how, Real y) const {
    return arith::CmpFOp::create(*b, how, value, y.value);
  }
  Value operator<(double y) const {
    return compare(arith::CmpFPredicate::OLT, of(y));
  }
  Real operator-() const { return apply<arith::NegFOp>(); }
};

Real operator+(Real x, Real y) { return x.with<arith::AddFOp>(y); }
Real operator-(Real x, Real y) { return x.with<arith::SubFOp>(y); }
Real operator*(Real x, Real y) { return x.with<arith::MulFOp>(y); }
Real operator/(Real x, Real y) { return x.with<arith::DivFOp>(y); }
Real operator+(Real x, double y) { return x + x.of(y); }
Real operator-(Real x, double y) { return x - x.of(y); }
Real operator*(Real x, double y) { return x * x.of(y); }
Real operator/(Real x, double y) { return x / x.of(y); }
Real operator-(double x, Real y) { return y.of(x) - y; }

Real log(Real x) { return x.apply<math::LogOp>(); }
Real log1p(Real x) { return x.apply<math::Log1pOp>(); }
Real sin(Real x) { return x.apply<math::SinOp>(); }
Real cos(Real x) { return x.apply<math::CosOp>(); }
Real sqrt(Real x) { return x.apply<math::SqrtOp>(); }
Real abs(Real x) { return x.apply<math::AbsFOp>(); }
Real floor(Real x) { return x.apply<math::FloorOp>(); }
Real select(Value condition, Real yes, Real no) {
  return {yes.b,
          arith::SelectOp::create(*yes.b, condition, yes.value, no.value)};
}
/// The first coefficient is that of the highest power.
Real polynomial(Real x, llvm::ArrayRef<double> coefficients) {
  Real sum = x.of(coefficients.front());
  for (double next : coefficients.drop_front())
    sum = sum * x + next;
  return sum;
}

Value square(const Scalar &s) {
  return arith::MulFOp::create(s.b, s.in[0], s.in[0]);
}

/// The formula in a float type of `bits` at least.
template <Real (*formula)(Real), unsigned bits>
Value wide(const Scalar &s) {
  Type type = s.type();
  Value x = s.in[0];
  Type least = bits == 64 ? Type(s.b.getF64Type()) : Type(s.b.getF32Type());
  if (type.getIntOrFloatBitWidth() < bits)
    x = castFloat(s.b, x, least);
  return castFloat(s.b, formula({&s.b, x}).value, type);
}

/// M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2011.
Real erfInvSingle(Real x) {
  Real w = -log((1.0 - x) * (x + 1.0));
  Real near =
      polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
                           -4.39150654e-06, 0.00021858087, -0.00125372503,
                           -0.00417768164, 0.246640727, 1.50140941});
  Real far =
      polynomial(sqrt(w) - 3.0, {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844, 0.00573950773, -0.0076224613,
                                 0.00943887047, 1.00167406, 2.83297682});
  return select(w < 5.0, near, far) * x;
}

Real erfInvDouble(Real x) {
  Real w = -log((1.0 - x) * (x + 1.0));
  Real near = polynomial(
      w - 3.125, {-3.6444120640178196996e-21, -1.685059138182016589e-19,
                  1.2858480715256400167e-18,  1.115787767802518096e-17,
                  -1.333171662854620906e-16,  2.0972767875968561637e-17,
                  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
                  -8.1519341976054721522e-14, 2.6335093153082322977e-12,
                  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
                  1.051212273321532285e-09,   -4.1126339803469836976e-09,
                  -2.9070369957882005086e-08, 4.2347877827932403518e-07,
                  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
                  0.0001867342080340571352,   -0.00074070253416626697512,
                  -0.0060336708714301490533,  0.24015818242558961693,
                  1.6536545626831027356});
  Real root = sqrt(w);
  Real middle = polynomial(
      root - 3.25,
      {2.2137376921775787049e-09, 9.0756561938885390979e-08,
       -2.7517406297064545428e-07, 1.8239629214389227755e-08,
       1.5027403968909827627e-06, -4.013867526981545969e-06,
       2.9234449089955446044e-06, 1.2475304481671778723e-05,
       -4.7318229009055733981e-05, 6.8284851459573175448e-05,
       2.4031110387097893999e-05, -0.0003550375203628474796,
       0.00095328937973738049703, -0.0016882755560235047313,
       0.0024914420961078508066, -0.0037512085075692412107,
       0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635});
  Real far = polynomial(root - 5.0,
                        {-2.7109920616438573243e-11, -2.5556418169965252055e-10,
                         1.5076572693500548083e-09, -3.7894654401267369937e-09,
                         7.6157012080783393804e-09, -1.4960026627149240478e-08,
                         2.9147953450901080826e-08, -6.7711997758452339498e-08,
                         2.2900482228026654717e-07, -9.9298272942317002539e-07,
                         4.5260625972231537039e-06, -1.9681778105531670567e-05,
                         7.5995277030017761139e-05, -0.00021503011930044477347,
                         -0.00013871931833623122026, 1.0103004648645343977,
                         4.8499064014085844221});
  Real outer = select(w < 16.0, middle, far);
  return select(w < 6.25, near, outer) * x;
}

/// Infinite at 1 and -1.
Real erfInv(Real x) {
  Real inside = x.value.getType().isF64() ? erfInvDouble(x) : erfInvSingle(x);
  Value isEdge = abs(x).compare(arith::CmpFPredicate::OEQ, x.of(1.0));
  return select(isEdge, x * HUGE_VAL, inside);
}

/// The sum of Lanczos's approximation with g = 7 and nine terms, and the
/// derivative of it: log gamma(z + 1) =
/// (z + 1/2) log(t) - t + log(sqrt(2 pi) sum), t = z + 7.5.
struct Lanczos {
  Real z, t, logT, sum, derivative;
};
Lanczos lanczos(Real z) {
  static const double terms[] = {
      676.520368121885098567009190444019, -1259.13921672240287047156078755283,
      771.3234287776530788486528258894,   -176.61502916214059906584551354,
      12.507343278686904814458936853,     -0.13857109526572011689554707,
      9.984369578019570859563e-6,         1.50563273514931155834e-7};
  Real sum = z.of(0.99999999999980993227684700473478), derivative = z.of(0.0);
  double k = 1;
  for (double term : terms) {
    Real from = z + k++;
    sum = sum + z.of(term) / from;
    derivative = derivative - z.of(term) / (from * from);
  }
  return {z, z + 7.5, log1p(z / 7.5) + std::log(7.5), sum, derivative};
}

/// By gamma(x) gamma(1 - x) = pi / sin(pi x) for x less than 1/2.
Real lgamma(Real x) {
  Value isLeft = x < 0.5;
  Lanczos at = lanczos(select(isLeft, -x, x - 1.0));
  Real right = (at.z + 0.5 - at.t / at.logT) * at.logT +
               0.91893853320467274178 + log(at.sum);
  Real fraction = abs(x) - floor(abs(x));
  Real folded = select(fraction < 0.5, fraction, 1.0 - fraction);
  Real logSine = log(sin(folded * M_PI));
  Real left = std::log(M_PI) - logSine - right;
  left = select(abs(logSine) < HUGE_VAL, left, -logSine); // a pole
  Real infinity = x.of(HUGE_VAL);
  return select(abs(x).compare(arith::CmpFPredicate::OEQ, infinity), infinity,
                select(isLeft, left, right));
}

/// The derivative of log gamma; NaN at its poles.
Real digamma(Real x) {
  Value isLeft = x < 0.5;
  Lanczos at = lanczos(select(isLeft, -x, x - 1.0));
  Real right = at.logT + at.derivative / at.sum - x.of(7.0) / at.t;
  Real reduced = x + abs(floor(x + 0.5)); // in -0.5 to 0.5
  Real left = right - (cos(reduced * M_PI) * M_PI) / sin(reduced * M_PI);
  Value isPole = arith::AndIOp::create(
      *x.b, x.compare(arith::CmpFPredicate::OLE, x.of(0.0)),
      x.compare(arith::CmpFPredicate::OEQ, floor(x)));
  return select(isPole, x.of(NAN), select(isLeft, left, right));
}

/// The next float after x towards y: floats of one sign are as their bits.
Value nextAfter(const Scalar &s) {
  ImplicitLocOpBuilder &b = s.b;
  Real x{&b, s.in[0]}, y{&b, s.in[1]};
  Type bits = b.getIntegerType(s.width());
  auto number = [&](int64_t of) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(bits, of));
  };
  auto isFloat = [&](arith::CmpFPredicate how, Real a, Real c) {
    return a.compare(how, c);
  };
  Value isAway = isFloat(arith::CmpFPredicate::OLT, abs(x), abs(y));
  Value sameSign = isFloat(arith::CmpFPredicate::OGT, x, x.of(0.0));
  Value ySign = isFloat(arith::CmpFPredicate::OGT, y, y.of(0.0));
  Value differ = arith::XOrIOp::create(b, sameSign, ySign);
  Value one = number(1), minus = number(-1);
  Value step = arith::SelectOp::create(b, isAway, one, minus);
  step = arith::SelectOp::create(b, differ, minus, step);
  Value from = arith::BitcastOp::create(b, bits, x.value);
  Value moved = arith::AddIOp::create(b, from, step);
  // From zero: the smallest float of y's sign.
  Value sign = arith::AndIOp::create(
      b, arith::BitcastOp::create(b, bits, y.value).getResult(),
      arith::ConstantOp::create(
          b, b.getIntegerAttr(bits, llvm::APInt::getSignMask(s.width()))));
  Value least = arith::OrIOp::create(b, sign, one);
  Value isZero = isFloat(arith::CmpFPredicate::OEQ, x, x.of(0.0));
  moved = arith::SelectOp::create(b, isZero, least, moved);
  Value made = arith::BitcastOp::create(b, s.type(), moved);
  made = arith::SelectOp::create(b, isFloat(arith::CmpFPredicate::OEQ, x, y),
                                 y.value, made);
  return arith::SelectOp::create(b, isFloat(arith::CmpFPredicate::UNO, x, y),
                                 (x + y).value, made);
}

template <arith::CmpFPredicate how>
Value isInfinite(const Scalar &s) {
  Real x{&s.b, s.in[0]};
  if (how == arith::CmpFPredicate::OEQ)
    x = abs(x);
  return x.compare(
      arith::CmpFPredicate::OEQ,
      x.of(how == arith::CmpFPredicate::OLT ? -HUGE_VAL : HUGE_VAL));
}

} // namespace

llvm::ArrayRef<NamedScalar> chloScalars() {
  static const NamedScalar all[] = {
      {"chlo.acos", unary<math::AcosOp>},
      {"chlo.acosh", unary<math::AcoshOp>},
      {"chlo.asin", unary<math::AsinOp>},
      {"chlo.asinh", unary<math::AsinhOp>},
      {"chlo.atan", unary<math::AtanOp>},
      {"chlo.atanh", unary<math::AtanhOp>},
      {"chlo.cosh", unary<math::CoshOp>},
      {"chlo.sinh", unary<math::SinhOp>},
      {"chlo.tan", unary<math::TanOp>},
      {"chlo.erf", unary<math::ErfOp>},
      {"chlo.erfc", unary<math::ErfcOp>},
      {"chlo.square", square},
      {"chlo.erf_inv", wide<erfInv, 32>},
      {"chlo.lgamma", wide<lgamma, 64>},
      {"chlo.digamma", wide<digamma, 64>},
      {"chlo.next_after", nextAfter},
      {"chlo.is_inf", isInfinite<arith::CmpFPredicate::OEQ>},
      {"chlo.is_pos_inf", isInfinite<arith::CmpFPredicate::OGT>},
      {"chlo.is_neg_inf", isInfinite<arith::CmpFPredicate::OLT>},
  };
  return all;
}

// Functions of floats, and what rounds them.

namespace {

template <typename Op>
Value binary(const Scalar &s) {
  return Op::create(s.b, s.in[0], s.in[1]);
}

/// 1 / (1 + exp(-x)). The power may be beyond a narrow type where the result is
/// not, and a type of 8 bits may have no infinity to say so.
Value logistic(const Scalar &s) {
  Type wide = s.width() < 32 ? s.b.getF32Type() : s.type();
  Value one = s.constant(wide, 1), x = castFloat(s.b, s.in[0], wide);
  Value power =
      math::ExpOp::create(s.b, arith::NegFOp::create(s.b, x).getResult());
  Value made = arith::DivFOp::create(
      s.b, one, arith::AddFOp::create(s.b, one, power).getResult());
  return castFloat(s.b, made, s.type());
}

Value isFinite(const Scalar &s) {
  const llvm::fltSemantics &format =
      cast<FloatType>(s.type()).getFloatSemantics();
  if (!llvm::APFloat::semanticsHasInf(format)) // nothing but NaN is not
    return arith::CmpFOp::create(s.b, arith::CmpFPredicate::ORD, s.in[0],
                                 s.in[0]);
  Value infinity = arith::ConstantOp::create(
      s.b, s.b.getFloatAttr(s.type(), llvm::APFloat::getInf(format)));
  Value size = math::AbsFOp::create(s.b, s.in[0]);
  return arith::CmpFOp::create(s.b, arith::CmpFPredicate::OLT, size, infinity);
}

} // namespace

llvm::ArrayRef<NamedScalar> functionScalars() {
  static const NamedScalar all[] = {
      {"stablehlo.exponential", unary<math::ExpOp>},
      {"stablehlo.exponential_minus_one", unary<math::ExpM1Op>},
      {"stablehlo.log", unary<math::LogOp>},
      {"stablehlo.log_plus_one", unary<math::Log1pOp>},
      {"stablehlo.logistic", logistic},
      {"stablehlo.sqrt", unary<math::SqrtOp>},
      {"stablehlo.rsqrt", unary<math::RsqrtOp>},
      {"stablehlo.cbrt", unary<math::CbrtOp>},
      {"stablehlo.sine", unary<math::SinOp>},
      {"stablehlo.cosine", unary<math::CosOp>},
      {"stablehlo.tan", unary<math::TanOp>},
      {"stablehlo.tanh", unary<math::TanhOp>},
      {"stablehlo.atan2", binary<math::Atan2Op>},
      {"stablehlo.ceil", unary<math::CeilOp>},
      {"stablehlo.floor", unary<math::FloorOp>},
      {"stablehlo.round_nearest_even", unary<math::RoundEvenOp>},
      {"stablehlo.round_nearest_afz", unary<math::RoundOp>},
      {"stablehlo.is_finite", isFinite},
  };
  return all;
}

} // namespace mgpu::conversion
