// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/Pointwise.h"

#include "support/Float.h"

#include <algorithm>
#include <cmath>

namespace mgpu::pipeline::torch {

namespace {

int kindOf(ElementType type) {
  return isFloat(type) ? 2 : type == ElementType::I1 ? 0 : 1;
}

/// The smallest type that holds both, of tensors of one rank of priority.
ElementType join(ElementType a, ElementType b) {
  if (a == b)
    return a;
  if (kindOf(a) != kindOf(b))
    return kindOf(a) > kindOf(b) ? a : b;
  if (sizeBytes(a) != sizeBytes(b))
    return sizeBytes(a) > sizeBytes(b) ? a : b;
  return ElementType::F32; // f16 and bf16
}

ElementType defaultOf(const Scalar &number) {
  return number.isFloat()                    ? ElementType::F32
         : number.kind == Scalar::Kind::Bool ? ElementType::I1
                                             : ElementType::I64;
}

} // namespace

Operand operandOf(const Call &call, const char *name) {
  return call.isTensor(name) ? Operand(call.tensor(name))
                             : Operand(call.scalar(name));
}

ElementType promoted(std::span<const Operand> operands) {
  std::optional<ElementType> best[3]; // with dimensions, without, numbers
  for (const Operand &each : operands) {
    auto &of = best[!each.tensor ? 2 : each.tensor->rank() == 0 ? 1 : 0];
    const ElementType type =
        each.tensor ? each.tensor->element : defaultOf(each.number);
    of = of ? join(*of, type) : type;
  }
  std::optional<ElementType> result;
  for (const auto &each : best)
    if (each && (!result || kindOf(*each) > kindOf(*result)))
      result = each;
  return *result;
}

Tensor asElements(Builder &b, const Operand &operand, ElementType element) {
  return operand.tensor ? b.convert(*operand.tensor, element)
                        : b.constant(operand.number, element);
}

ElementType functionResult(ElementType element) {
  return isFloat(element) ? element : ElementType::F32;
}
Tensor forFunction(Builder &b, const Tensor &x) {
  return b.convert(x, wide(functionResult(x.element)));
}

namespace {

/// x log y, which is 0 where x is, but for a y that is no number.
Results timesLog(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "other")};
  const ElementType result = functionResult(promoted(both)), in = wide(result);
  const Tensor x = asElements(b, both[0], in), y = asElements(b, both[1], in),
               product = x * b.unary("stablehlo.log", y),
               isZero = b.binary("stablehlo.and",
                                 b.compare("EQ", x, b.constant(0.0, in)),
                                 b.compare("EQ", y, y));
  return {b.convert(b.select(isZero, b.constant(0.0, in), product), result)};
}

/// A function of reals; `detail` is its name.
Results function(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.convert(b.unary(call.detail, forFunction(b, x)),
                    functionResult(x.element))};
}

/// Rounding keeps the type: whole numbers stay as they are.
Results rounding(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (!isFloat(x.element))
    return {x};
  return {b.convert(b.unary(call.detail, forFunction(b, x)), x.element)};
}

Results sameType(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.element == ElementType::I1)
    call.refuse("it has no meaning for bool");
  return {b.convert(b.unary(call.detail, b.convert(x, wide(x.element))),
                    x.element)};
}

Results complement(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.unary("stablehlo.not",
                  call.detail ? b.convert(x, ElementType::I1) : x)};
}

/// a op alpha * b, in the type of both.
Results arithmeticOf(Builder &b, const Call &call) {
  Operand x = operandOf(call, "self"), y = operandOf(call, "other");
  const Operand both[] = {x, y};
  const ElementType result = promoted(both), in = wide(result);
  Tensor left = asElements(b, x, in), right = asElements(b, y, in);
  if (call.has("alpha") && call.real("alpha") != 1)
    right = right * b.constant(call.scalar("alpha"), in);
  return {b.convert(b.binary(call.detail, left, right), result)};
}

/// The quotient rounded down, as Python's // has it.
Tensor floorDivide(Builder &b, const Tensor &x, const Tensor &y) {
  const Tensor rest = b.binary("stablehlo.remainder", x, y),
               zero = b.constant(0.0, x.element),
               isOther = b.binary("stablehlo.and", b.compare("NE", rest, zero),
                                  b.compare("NE", b.compare("LT", rest, zero),
                                            b.compare("LT", y, zero)));
  if (!isFloat(x.element)) {
    const Tensor whole = x / y;
    return b.select(isOther, whole - 1.0, whole);
  }
  const Tensor exact = (x - rest) / y,
               quotient = b.select(isOther, exact - 1.0, exact),
               down = b.unary("stablehlo.floor", quotient),
               near = b.select(
                   b.compare("GT", quotient - down, b.constant(0.5, x.element)),
                   down + 1.0, down);
  return b.select(b.compare("EQ", y, zero), x / y, near);
}

Results division(Builder &b, const Call &call) {
  const Operand x = operandOf(call, "self"), y = operandOf(call, "other");
  const Operand both[] = {x, y};
  ElementType result = promoted(both);
  std::string mode = call.detail ? call.detail : "";
  if (call.has("rounding_mode") && !call.isNone("rounding_mode"))
    mode = call.text("rounding_mode");
  if (mode.empty())
    result = functionResult(result);
  const ElementType in = wide(result);
  const Tensor left = asElements(b, x, in), right = asElements(b, y, in);
  if (mode == "floor")
    return {b.convert(floorDivide(b, left, right), result)};
  const Tensor quotient = left / right;
  if (mode != "trunc" || !isFloat(in))
    return {b.convert(quotient, result)};
  const Tensor down = b.unary("stablehlo.floor", quotient),
               up = b.unary("stablehlo.ceil", quotient);
  return {b.convert(
      b.select(b.compare("LT", quotient, b.constant(0.0, in)), up, down),
      result)};
}

/// Python's %, of the sign of the divisor; or C's fmod.
Results modulo(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "other")};
  const ElementType result = promoted(both), in = wide(result);
  const Tensor x = asElements(b, both[0], in), y = asElements(b, both[1], in),
               rest = b.binary("stablehlo.remainder", x, y),
               zero = b.constant(0.0, in);
  if (call.detail)
    return {b.convert(rest, result)};
  const Tensor isOther = b.binary(
      "stablehlo.and", b.compare("NE", rest, zero),
      b.compare("NE", b.compare("LT", rest, zero), b.compare("LT", y, zero)));
  return {b.convert(b.select(isOther, rest + y, rest), result)};
}

Results comparison(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "other")};
  const ElementType in = promoted(both);
  return {b.compare(call.detail, asElements(b, both[0], in),
                    asElements(b, both[1], in))};
}

/// and, or, xor of truth values, or of bits.
Results logical(Builder &b, const Call &call) {
  return {b.binary(call.detail, b.convert(call.tensor("self"), ElementType::I1),
                   b.convert(call.tensor("other"), ElementType::I1))};
}
Results bitwise(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "other")};
  const ElementType in = promoted(both);
  if (isFloat(in))
    call.refuse("it has no meaning for floats", ErrorKind::Invalid);
  return {b.binary(call.detail, asElements(b, both[0], in),
                   asElements(b, both[1], in))};
}

Tensor power(Builder &b, const Tensor &x, const Scalar &exponent) {
  const double p = exponent.real;
  if (p == 0)
    return b.constant(1.0, x.element, x.sizes);
  if (p == 1)
    return x;
  if (p == 2)
    return x * x;
  if (p == 3)
    return x * x * x;
  if (!isFloat(x.element) && p < 0)
    refuse(ErrorKind::Invalid, "whole numbers are raised to a negative power");
  if (p == 0.5)
    return b.unary("stablehlo.sqrt", x);
  if (p == -0.5)
    return b.unary("stablehlo.rsqrt", x);
  if (p == -1)
    return b.constant(1.0, x.element) / x;
  if (p == -2)
    return b.constant(1.0, x.element) / (x * x);
  return b.binary("stablehlo.power", x, b.constant(exponent, x.element));
}

Results powerOf(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "exponent")};
  const ElementType result = promoted(both), in = wide(result);
  const Tensor x = asElements(b, both[0], in);
  if (!both[1].tensor)
    return {b.convert(power(b, x, both[1].number), result)};
  return {b.convert(b.binary("stablehlo.power", x, asElements(b, both[1], in)),
                    result)};
}

/// x within bounds, either of which may be missing.
Results clampTo(Builder &b, const Call &call) {
  std::vector<Operand> all{call.tensor("self")};
  const char *names[] = {"min", "max"};
  for (const char *name : names)
    if (call.has(name) && !call.isNone(name))
      all.push_back(operandOf(call, name));
  const ElementType result = promoted(all), in = wide(result);
  Tensor x = asElements(b, all[0], in);
  size_t next = 1;
  for (const char *name : names)
    if (call.has(name) && !call.isNone(name))
      x = b.binary(name == names[0] ? "stablehlo.maximum" : "stablehlo.minimum",
                   x, asElements(b, all[next++], in));
  return {b.convert(x, result)};
}

Results where(Builder &b, const Call &call) {
  const Operand both[] = {operandOf(call, "self"), operandOf(call, "other")};
  const ElementType result = promoted(both);
  return {b.select(b.convert(call.tensor("condition"), ElementType::I1),
                   asElements(b, both[0], result),
                   asElements(b, both[1], result))};
}

Results maskedFill(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"),
               value = asElements(b, operandOf(call, "value"), x.element);
  if (value.rank() != 0)
    call.refuse("its value is no single number", ErrorKind::Invalid);
  return {b.select(b.convert(call.tensor("mask"), ElementType::I1), value, x)};
}

/// 0 of a NaN, where StableHLO's sign is NaN.
Results signOf(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.element == ElementType::I1)
    return {x};
  const Tensor zero = b.constant(0.0, x.element, x.sizes);
  return {b.convert(b.compare("GT", x, zero), x.element) -
          b.convert(b.compare("LT", x, zero), x.element)};
}
Results isNan(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.compare("NE", x, x)};
}
Results isInfinite(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (!isFloat(x.element))
    return {b.constant(0.0, ElementType::I1, x.sizes)};
  return {b.compare("EQ",
                    b.unary("stablehlo.abs", b.convert(x, wide(x.element))),
                    b.constant(INFINITY, wide(x.element)))};
}

Results reciprocal(Builder &b, const Call &call) {
  const Tensor x = forFunction(b, call.tensor("self"));
  return {b.convert(b.constant(1.0, x.element) / x,
                    functionResult(call.tensor("self").element))};
}

/// The logarithm of another base.
Results logarithm(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), wider = forFunction(b, x);
  const double base = std::string_view(call.detail) == "2" ? 2 : 10;
  return {b.convert(b.unary("stablehlo.log", wider) / std::log(base),
                    functionResult(x.element))};
}

Results square(Builder &b, const Call &call) {
  const Tensor x =
      b.convert(call.tensor("self"), wide(call.tensor("self").element));
  return {b.convert(x * x, call.tensor("self").element)};
}

/// self + value * tensor1 op tensor2.
Results addProduct(Builder &b, const Call &call) {
  std::vector<Operand> all;
  for (const char *name : {"self", "tensor1", "tensor2"})
    all.push_back(call.tensor(name));
  const ElementType result = promoted(all), in = wide(result);
  const Tensor x = asElements(b, all[0], in), y = asElements(b, all[1], in),
               z = asElements(b, all[2], in);
  const Tensor scaled =
      call.real("value") == 1 ? y : y * b.constant(call.scalar("value"), in);
  return {b.convert(x + b.binary(call.detail, scaled, z), result)};
}

Results interpolate(Builder &b, const Call &call) {
  const Operand all[] = {operandOf(call, "self"), operandOf(call, "end"),
                         operandOf(call, "weight")};
  const ElementType result = promoted(all), in = wide(result);
  const Tensor x = asElements(b, all[0], in), end = asElements(b, all[1], in),
               weight = asElements(b, all[2], in);
  // From the nearer end, so that either is met exactly.
  return {b.convert(b.select(b.compare("LT", b.unary("stablehlo.abs", weight),
                                       b.constant(0.5, in)),
                             x + weight * (end - x),
                             end - (end - x) * (1.0 - weight)),
                    result)};
}

constexpr Operation operations[] = {
    {"exp(self)", function, "stablehlo.exponential"},
    {"expm1(self)", function, "stablehlo.exponential_minus_one"},
    {"log(self)", function, "stablehlo.log"},
    {"log1p(self)", function, "stablehlo.log_plus_one"},
    {"log2(self)", logarithm, "2"},
    {"log10(self)", logarithm, "10"},
    {"sqrt(self)", function, "stablehlo.sqrt"},
    {"rsqrt(self)", function, "stablehlo.rsqrt"},
    {"sin(self)", function, "stablehlo.sine"},
    {"cos(self)", function, "stablehlo.cosine"},
    {"tan(self)", function, "stablehlo.tan"},
    {"sinh(self)", function, "chlo.sinh"},
    {"cosh(self)", function, "chlo.cosh"},
    {"tanh(self)", function, "stablehlo.tanh"},
    {"asin(self)", function, "chlo.asin"},
    {"acos(self)", function, "chlo.acos"},
    {"atan(self)", function, "chlo.atan"},
    {"asinh(self)", function, "chlo.asinh"},
    {"acosh(self)", function, "chlo.acosh"},
    {"atanh(self)", function, "chlo.atanh"},
    {"erf(self)", function, "chlo.erf"},
    {"sigmoid(self)", function, "stablehlo.logistic"},
    {"reciprocal(self)", reciprocal},
    {"ceil(self)", rounding, "stablehlo.ceil"},
    {"floor(self)", rounding, "stablehlo.floor"},
    {"round(self)", rounding, "stablehlo.round_nearest_even"},
    {"trunc(self)",
     [](Builder &b, const Call &call) -> Results {
       const Tensor x = call.tensor("self");
       if (!isFloat(x.element))
         return {x};
       const Tensor wider = b.convert(x, wide(x.element));
       return {b.convert(
           b.unary("stablehlo.sign", wider) *
               b.unary("stablehlo.floor", b.unary("stablehlo.abs", wider)),
           x.element)};
     }},
    {"abs(self)", sameType, "stablehlo.abs"},
    {"neg(self)", sameType, "stablehlo.negate"},
    {"sign(self)", signOf},
    {"sgn(self)", signOf},
    {"square(self)", square},
    {"isnan(self)", isNan},
    {"isinf(self)", isInfinite},
    {"bitwise_not(self)", complement},
    {"logical_not(self)", complement, "bool"},
    {"add.Tensor(self, other, alpha=1)", arithmeticOf, "stablehlo.add"},
    {"add.Scalar(self, other, alpha=1)", arithmeticOf, "stablehlo.add"},
    {"sub.Tensor(self, other, alpha=1)", arithmeticOf, "stablehlo.subtract"},
    {"sub.Scalar(self, other, alpha=1)", arithmeticOf, "stablehlo.subtract"},
    {"rsub.Scalar(self, other, alpha=1)",
     [](Builder &b, const Call &call) -> Results {
       const Operand both[] = {operandOf(call, "self"),
                               operandOf(call, "other")};
       const ElementType result = promoted(both), in = wide(result);
       Tensor x = asElements(b, both[0], in);
       if (call.real("alpha") != 1)
         x = x * b.constant(call.scalar("alpha"), in);
       return {b.convert(asElements(b, both[1], in) - x, result)};
     }},
    {"mul.Tensor(self, other)", arithmeticOf, "stablehlo.multiply"},
    {"mul.Scalar(self, other)", arithmeticOf, "stablehlo.multiply"},
    {"maximum(self, other)", arithmeticOf, "stablehlo.maximum"},
    {"minimum(self, other)", arithmeticOf, "stablehlo.minimum"},
    {"div.Tensor(self, other)", division},
    {"div.Scalar(self, other)", division},
    {"div.Tensor_mode(self, other, rounding_mode)", division},
    {"div.Scalar_mode(self, other, rounding_mode)", division},
    {"floor_divide(self, other)", division, "floor"},
    {"remainder.Tensor(self, other)", modulo},
    {"remainder.Scalar(self, other)", modulo},
    {"fmod.Tensor(self, other)", modulo, "C"},
    {"fmod.Scalar(self, other)", modulo, "C"},
    {"pow.Tensor_Tensor(self, exponent)", powerOf},
    {"pow.Tensor_Scalar(self, exponent)", powerOf},
    {"pow.Scalar(self, exponent)", powerOf},
    {"atan2(self, other)",
     [](Builder &b, const Call &call) -> Results {
       const Operand both[] = {operandOf(call, "self"),
                               operandOf(call, "other")};
       const ElementType result = functionResult(promoted(both));
       return {b.convert(b.binary("stablehlo.atan2",
                                  asElements(b, both[0], wide(result)),
                                  asElements(b, both[1], wide(result))),
                         result)};
     }},
    {"eq.Tensor(self, other)", comparison, "EQ"},
    {"eq.Scalar(self, other)", comparison, "EQ"},
    {"ne.Tensor(self, other)", comparison, "NE"},
    {"ne.Scalar(self, other)", comparison, "NE"},
    {"lt.Tensor(self, other)", comparison, "LT"},
    {"lt.Scalar(self, other)", comparison, "LT"},
    {"le.Tensor(self, other)", comparison, "LE"},
    {"le.Scalar(self, other)", comparison, "LE"},
    {"gt.Tensor(self, other)", comparison, "GT"},
    {"gt.Scalar(self, other)", comparison, "GT"},
    {"ge.Tensor(self, other)", comparison, "GE"},
    {"ge.Scalar(self, other)", comparison, "GE"},
    {"logical_and(self, other)", logical, "stablehlo.and"},
    {"logical_or(self, other)", logical, "stablehlo.or"},
    {"logical_xor(self, other)", logical, "stablehlo.xor"},
    {"bitwise_and.Tensor(self, other)", bitwise, "stablehlo.and"},
    {"bitwise_and.Scalar(self, other)", bitwise, "stablehlo.and"},
    {"bitwise_or.Tensor(self, other)", bitwise, "stablehlo.or"},
    {"bitwise_or.Scalar(self, other)", bitwise, "stablehlo.or"},
    {"bitwise_xor.Tensor(self, other)", bitwise, "stablehlo.xor"},
    {"bitwise_xor.Scalar(self, other)", bitwise, "stablehlo.xor"},
    {"clamp(self, min=None, max=None)", clampTo},
    {"clamp.Tensor(self, min=None, max=None)", clampTo},
    {"clamp_min(self, min)", clampTo},
    {"clamp_max(self, max)", clampTo},
    {"clamp_min.Tensor(self, min)", clampTo},
    {"clamp_max.Tensor(self, max)", clampTo},
    {"where.self(condition, self, other)", where},
    {"where.ScalarOther(condition, self, other)", where},
    {"where.ScalarSelf(condition, self, other)", where},
    {"where.Scalar(condition, self, other)", where},
    {"masked_fill.Scalar(self, mask, value)", maskedFill},
    {"masked_fill.Tensor(self, mask, value)", maskedFill},
    {"addcmul(self, tensor1, tensor2, value=1)", addProduct,
     "stablehlo.multiply"},
    {"addcdiv(self, tensor1, tensor2, value=1)", addProduct,
     "stablehlo.divide"},
    {"xlogy.Tensor(self, other)", timesLog},
    {"xlogy.Scalar_Self(self, other)", timesLog},
    {"xlogy.Scalar_Other(self, other)", timesLog},
    {"lerp.Scalar(self, end, weight)", interpolate},
    {"lerp.Tensor(self, end, weight)", interpolate},
};

} // namespace

std::span<const Operation> pointwiseOperations() { return operations; }

} // namespace mgpu::pipeline::torch
