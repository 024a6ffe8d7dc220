// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ERRORRULES_H
#define MGPU_KERNELS_HOST_ERRORRULES_H

// Propagates errors: what each operation does to those of its operands
// (docs/numerics.md has the table), as operations on f64.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

#include <cmath>

namespace mgpu::kernels {

/// A float in f64: a sum of `terms` terms whose magnitudes add up to
/// `magnitude`, each with the errors it had before, together `error`. Without
/// `terms` it is one term with its own magnitude.
struct Wide {
  mlir::Value value, error;
  mlir::Value magnitude = {}, terms = {};
};

/// Builds at `b`. A `type` is that of the program's operation.
class ErrorRules {
public:
  explicit ErrorRules(mlir::Location loc) : b(loc.getContext()), loc(loc) {}

protected:
  using Value = mlir::Value;
  using Type = mlir::Type;

  Type f64() { return b.getF64Type(); }
  Value real(double value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
  }
  Value word(uint64_t value) {
    return mlir::arith::ConstantOp::create(b, loc,
                                           b.getI64IntegerAttr(int64_t(value)));
  }
  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value plus(Value x, Value y) { return make<mlir::arith::AddFOp>(x, y); }
  Value minus(Value x, Value y) { return make<mlir::arith::SubFOp>(x, y); }
  Value times(Value x, Value y) { return make<mlir::arith::MulFOp>(x, y); }
  Value size(Value x) { return mlir::math::AbsFOp::create(b, loc, x); }
  Value select(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value less(Value x, Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OLT,
                                       x, y);
  }
  Value isFinite(Value x) { return less(size(x), real(INFINITY)); }

  Value magnitude(const Wide &x) {
    return x.terms ? x.magnitude : size(x.value);
  }
  Value terms(const Wide &x) { return x.terms ? x.terms : real(1); }
  Value errorOf(const Wide &x, Type type);
  Wide sum(const Wide &x, const Wide &y, Value value);
  Wide rounded(Value value, Value error, double units, Type type);
  Wide product(const Wide &x, const Wide &y, Value value, Type type);
  Wide quotient(const Wide &x, const Wide &y, Value value, Type type);
  Wide larger(const Wide &x, const Wide &y, Value value, Type type);
  Wide either(Value condition, const Wide &x, const Wide &y);
  Wide evaluated(mlir::Operation *op, llvm::ArrayRef<Wide> operands, Type type);
  Value apply(mlir::Operation *op, mlir::ValueRange operands);

  mlir::OpBuilder b;
  mlir::Location loc;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_ERRORRULES_H
