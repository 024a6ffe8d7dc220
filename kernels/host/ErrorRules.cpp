// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/ErrorRules.h"

#include "kernels/lower/MathAccuracy.h"

using namespace mlir;

namespace mgpu::kernels {

/// Half a unit in the last place, of 1.
static double unitOf(Type type) {
  return std::ldexp(1.0, -int(llvm::APFloat::semanticsPrecision(
                             cast<FloatType>(type).getFloatSemantics())));
}

/// Bounds the difference between any two orders of the sum, and what was
/// before. A sum of n terms deviates by about sqrt(n - 1) roundings of the sum
/// of magnitudes (Higham and Mary 2019). Infinities and NaNs have no bound.
Value ErrorRules::errorOf(const Wide &x, Type type) {
  Value error = x.error;
  if (x.terms) {
    Value roundings = math::SqrtOp::create(b, loc, minus(x.terms, real(1)));
    error =
        plus(error, times(times(roundings, x.magnitude), real(unitOf(type))));
  }
  return select(isFinite(x.value), error, real(0));
}

Wide ErrorRules::sum(const Wide &x, const Wide &y, Value value) {
  return {value, plus(x.error, y.error), plus(magnitude(x), magnitude(y)),
          plus(terms(x), terms(y))};
}

/// One rounding beside those of the operands; `units` are halves of a unit in
/// the last place.
Wide ErrorRules::rounded(Value value, Value error, double units, Type type) {
  Value own = times(size(value), real(units * unitOf(type)));
  return {value, error ? plus(error, own) : own};
}

Wide ErrorRules::product(const Wide &x, const Wide &y, Value value, Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error = plus(plus(times(size(x.value), ofY), times(size(y.value), ofX)),
                     times(ofX, ofY));
  return rounded(value, error, 1, type);
}

Wide ErrorRules::quotient(const Wide &x, const Wide &y, Value value,
                          Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error =
      make<arith::DivFOp>(plus(ofX, times(size(value), ofY)), size(y.value));
  return rounded(value, error, 1, type);
}

Wide ErrorRules::larger(const Wide &x, const Wide &y, Value value, Type type) {
  return {value, make<arith::MaximumFOp>(errorOf(x, type), errorOf(y, type))};
}

Wide ErrorRules::either(Value condition, const Wide &x, const Wide &y) {
  Wide chosen{select(condition, x.value, y.value),
              select(condition, x.error, y.error)};
  if (x.terms || y.terms) {
    chosen.magnitude = select(condition, magnitude(x), magnitude(y));
    chosen.terms = select(condition, terms(x), terms(y));
  }
  return chosen;
}

Value ErrorRules::apply(Operation *op, ValueRange operands) {
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addTypes(f64());
  return b.create(state)->getResult(0);
}

/// By how much the result changes where an operand is off to either side.
Wide ErrorRules::evaluated(Operation *op, ArrayRef<Wide> operands, Type type) {
  SmallVector<Value> values;
  for (const Wide &operand : operands)
    values.push_back(operand.value);
  Value value = apply(op, values), error = real(0);
  for (auto [k, operand] : llvm::enumerate(operands)) {
    Value off = errorOf(operand, type);
    Value most = real(0);
    for (Value moved : {plus(operand.value, off), minus(operand.value, off)}) {
      SmallVector<Value> there = values;
      there[k] = moved;
      // MaxNum passes over NaN: the function's domain may end here.
      most = make<arith::MaxNumFOp>(most, size(minus(apply(op, there), value)));
    }
    error = plus(error, most);
  }
  const FunctionUlps *ulps = ulpsOf(op->getName().stripDialect());
  // The error of a function is counted from the exact result rounded.
  return ulps ? rounded(value, error, 2 * ulps->most(type.isF64()) + 1, type)
              : Wide{value, error};
}

} // namespace mgpu::kernels
