// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of Functions.h and Functions64.h as operations, in place of
// those of MLIR's math dialect.
#include "kernels/host/Functions64.h"
#include "kernels/host/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"

#include <type_traits>

using namespace mlir;

namespace mgpu::kernels {

namespace {

using Predicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

/// A constant of the type that an operation's other operand has.
struct Literal {
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Literal(T value) : real(double(value)) {
    if constexpr (std::is_integral_v<T>)
      whole = value;
  }
  double real;
  uint64_t whole = 0;
};

/// A value of f32, f64, i32, i64 or i1, or a vector of those, with the
/// operations of Functions.h.
struct Number {
  ImplicitLocOpBuilder *b;
  Value value;

  Type element() const { return getElementTypeOrSelf(value); }
  bool isFloat() const { return isa<FloatType>(element()); }
  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(value.getType());
    return vector ? Type(vector.clone(element)) : element;
  }
  Number of(Literal literal) const {
    TypedAttr scalar =
        isFloat() ? TypedAttr(b->getFloatAttr(element(), literal.real))
                  : TypedAttr(b->getIntegerAttr(
                        element(), APInt(element().getIntOrFloatBitWidth(),
                                         literal.whole, false, true)));
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return {b, arith::ConstantOp::create(*b, scalar)};
  }
  template <class Op, class... Rest>
  Number make(Rest... rest) const {
    return {b, Op::create(*b, value, rest.value...)};
  }
  template <class Op>
  Number cast(Type element) const {
    return {b, Op::create(*b, like(element), value)};
  }
  Number compare(Predicate ofFloats, IntPredicate ofBits, Number other) const {
    if (isFloat())
      return {b, arith::CmpFOp::create(*b, ofFloats, value, other.value)};
    return {b, arith::CmpIOp::create(*b, ofBits, value, other.value)};
  }
};

#define MGPU_BINARY(sign, Float, Int)                                          \
  Number operator sign(Number x, Number y) {                                   \
    return x.isFloat() ? x.make<Float>(y) : x.make<Int>(y);                    \
  }                                                                            \
  [[maybe_unused]] Number operator sign(Number x, Literal y) {                 \
    return x sign x.of(y);                                                     \
  }                                                                            \
  [[maybe_unused]] Number operator sign(Literal x, Number y) {                 \
    return y.of(x) sign y;                                                     \
  }
#define MGPU_BITWISE(sign, Int)                                                \
  Number operator sign(Number x, Number y) { return x.make<Int>(y); }          \
  [[maybe_unused]] Number operator sign(Number x, Literal y) {                 \
    return x sign x.of(y);                                                     \
  }
#define MGPU_COMPARE(sign, ofFloats, ofBits)                                   \
  Number operator sign(Number x, Number y) {                                   \
    return x.compare(Predicate::ofFloats, IntPredicate::ofBits, y);            \
  }                                                                            \
  [[maybe_unused]] Number operator sign(Number x, Literal y) {                 \
    return x sign x.of(y);                                                     \
  }
MGPU_BINARY(+, arith::AddFOp, arith::AddIOp)
MGPU_BINARY(-, arith::SubFOp, arith::SubIOp)
MGPU_BINARY(*, arith::MulFOp, arith::MulIOp)
MGPU_BINARY(/, arith::DivFOp, arith::DivUIOp)
MGPU_BITWISE(&, arith::AndIOp)
MGPU_BITWISE(|, arith::OrIOp)
MGPU_BITWISE(^, arith::XOrIOp)
MGPU_BITWISE(<<, arith::ShLIOp)
MGPU_BITWISE(>>, arith::ShRUIOp)
MGPU_COMPARE(<, OLT, ult)
MGPU_COMPARE(>, OGT, ugt)
MGPU_COMPARE(>=, OGE, uge)
MGPU_COMPARE(==, OEQ, eq)
#undef MGPU_BINARY
#undef MGPU_BITWISE
#undef MGPU_COMPARE

Number operator-(Number x) { return x.make<arith::NegFOp>(); }
Number bitsOf(Number x) {
  return x.cast<arith::BitcastOp>(
      x.b->getIntegerType(x.element().getIntOrFloatBitWidth()));
}
Number floatOf(Number x) {
  return x.cast<arith::BitcastOp>(
      x.element().isInteger(32) ? Type(x.b->getF32Type()) : x.b->getF64Type());
}
Number wide(Number x) {
  return x.isFloat() ? x.cast<arith::ExtFOp>(x.b->getF64Type())
                     : x.cast<arith::ExtUIOp>(x.b->getI64Type());
}
Number narrow(Number x) { return x.cast<arith::TruncFOp>(x.b->getF32Type()); }
Number constant(Number x, double value) { return x.of(value); }
Number isFalse(Number x) { return x ^ 1u; }
Number both(Number x, Number y) { return x & y; }
Number either(Number x, Number y) { return x | y; }
Number squareRoot(Number x) { return x.make<math::SqrtOp>(); }
Number fused(Number x, Number y, Number z) { return x.make<math::FmaOp>(y, z); }
Number step(Number x, Number y, Number z) {
  return x.element().isF32() ? fused(x, y, z) : x * y + z;
}
Number choose(Number condition, Number yes, Number no) {
  return condition.make<arith::SelectOp>(yes, no);
}

using One = Number (*)(Number);

/// Null for other operations.
One functionOf(Operation *op) {
  using namespace functions;
  if (getElementTypeOrSelf(op->getResult(0)).isF64())
    return llvm::StringSwitch<One>(op->getName().getStringRef())
        .Case("math.erf", erf64<Number>)
        .Case("math.exp", exp64<Number>)
        .Case("math.log", log64<Number>)
        .Case("math.tanh", tanh64<Number>)
        .Default(nullptr);
  return llvm::StringSwitch<One>(op->getName().getStringRef())
      .Case("math.acos", acos<Number>)
      .Case("math.acosh", acosh<Number>)
      .Case("math.asin", asin<Number>)
      .Case("math.asinh", asinh<Number>)
      .Case("math.atan", atan<Number>)
      .Case("math.atanh", atanh<Number>)
      .Case("math.cbrt", cbrt<Number>)
      .Case("math.cos", cos<Number>)
      .Case("math.cosh", cosh<Number>)
      .Case("math.erf", erf<Number>)
      .Case("math.erfc", erfc<Number>)
      .Case("math.exp", exp<Number>)
      .Case("math.exp2", exp2<Number>)
      .Case("math.expm1", expm1<Number>)
      .Case("math.log", log<Number>)
      .Case("math.log10", log10<Number>)
      .Case("math.log1p", log1p<Number>)
      .Case("math.log2", log2<Number>)
      .Case("math.sin", sin<Number>)
      .Case("math.sinh", sinh<Number>)
      .Case("math.tan", tan<Number>)
      .Case("math.tanh", tanh<Number>)
      .Default(nullptr);
}

} // namespace

bool expandFunctions(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
        op->getNumResults() != 1)
      return;
    const Type type = getElementTypeOrSelf(op->getResult(0));
    if (type.isF32() || (type.isF64() && functionOf(op)))
      found.push_back(op);
  });
  bool isAny = false;
  for (Operation *op : found) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto operand = [&](unsigned k) { return Number{&b, op->getOperand(k)}; };
    Value value;
    if (One function = functionOf(op))
      value = function(operand(0)).value;
    else if (isa<math::Atan2Op>(op))
      value = functions::atan2(operand(0), operand(1)).value;
    else if (isa<math::PowFOp>(op))
      value = functions::powf(operand(0), operand(1)).value;
    else
      continue;
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
    isAny = true;
  }
  return isAny;
}

} // namespace mgpu::kernels
