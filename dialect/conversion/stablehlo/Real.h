// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_REAL_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_REAL_H

// Formulas of floats as C++ writes them.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mgpu::conversion {

/// A float of a kernel; numbers take its type.
struct Real {
  mlir::ImplicitLocOpBuilder *b;
  mlir::Value value;

  Real of(double number) const {
    return {b, mlir::arith::ConstantOp::create(
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
  mlir::Value compare(mlir::arith::CmpFPredicate how, Real y) const {
    return mlir::arith::CmpFOp::create(*b, how, value, y.value);
  }
  mlir::Value operator<(double y) const {
    return compare(mlir::arith::CmpFPredicate::OLT, of(y));
  }
  Real operator-() const { return apply<mlir::arith::NegFOp>(); }
};

inline Real operator+(Real x, Real y) { return x.with<mlir::arith::AddFOp>(y); }
inline Real operator-(Real x, Real y) { return x.with<mlir::arith::SubFOp>(y); }
inline Real operator*(Real x, Real y) { return x.with<mlir::arith::MulFOp>(y); }
inline Real operator/(Real x, Real y) { return x.with<mlir::arith::DivFOp>(y); }
inline Real operator+(Real x, double y) { return x + x.of(y); }
inline Real operator-(Real x, double y) { return x - x.of(y); }
inline Real operator*(Real x, double y) { return x * x.of(y); }
inline Real operator/(Real x, double y) { return x / x.of(y); }
inline Real operator-(double x, Real y) { return y.of(x) - y; }

inline Real log(Real x) { return x.apply<mlir::math::LogOp>(); }
inline Real log1p(Real x) { return x.apply<mlir::math::Log1pOp>(); }
inline Real sin(Real x) { return x.apply<mlir::math::SinOp>(); }
inline Real cos(Real x) { return x.apply<mlir::math::CosOp>(); }
inline Real sqrt(Real x) { return x.apply<mlir::math::SqrtOp>(); }
inline Real abs(Real x) { return x.apply<mlir::math::AbsFOp>(); }
inline Real floor(Real x) { return x.apply<mlir::math::FloorOp>(); }
inline Real select(mlir::Value condition, Real yes, Real no) {
  return {yes.b, mlir::arith::SelectOp::create(*yes.b, condition, yes.value,
                                               no.value)};
}
/// The first coefficient is that of the highest power.
inline Real polynomial(Real x, llvm::ArrayRef<double> coefficients) {
  Real sum = x.of(coefficients.front());
  for (double next : coefficients.drop_front())
    sum = sum * x + next;
  return sum;
}

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_REAL_H
