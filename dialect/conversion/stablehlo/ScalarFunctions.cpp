// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of floats, and what rounds them.
#include "dialect/conversion/stablehlo/Scalars.h"

namespace mgpu::conversion {

using namespace mlir;

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
