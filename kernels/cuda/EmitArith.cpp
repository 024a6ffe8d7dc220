// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arith dialect, whose integers are in EmitInteger.cpp, and the math
// dialect.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

static bool isFloat8(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && widthOf(element) == 8;
}

static std::string floatCompare(arith::CmpFPredicate predicate,
                                const std::string &a, const std::string &b) {
  using P = arith::CmpFPredicate;
  auto both = [&](const char *sign) { return a + " " + sign + " " + b; };
  // An unordered predicate is the negation of the opposite ordered one.
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return both("==");
  case P::OGT:
    return both(">");
  case P::OGE:
    return both(">=");
  case P::OLT:
    return both("<");
  case P::OLE:
    return both("<=");
  case P::UNE:
    return both("!=");
  case P::UGT:
    return "!(" + both("<=") + ")";
  case P::UGE:
    return "!(" + both("<") + ")";
  case P::ULT:
    return "!(" + both(">=") + ")";
  case P::ULE:
    return "!(" + both(">") + ")";
  case P::ONE:
    return both("<") + " || " + both(">");
  case P::UEQ:
    return "!(" + both("<") + " || " + both(">") + ")";
  case P::ORD:
    return a + " == " + a + " && " + b + " == " + b;
  case P::UNO:
    return a + " != " + a + " || " + b + " != " + b;
  }
  llvm_unreachable("all predicates are covered");
}

/// A constant vector; a constant scalar is written where it is used.
LogicalResult FunctionEmitter::emit(arith::ConstantOp op) {
  auto values = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!values)
    return refuse(op);
  declare(op.getResult());
  std::string name = scalars[op.getResult()];
  for (auto [lane, value] : llvm::enumerate(values.getValues<Attribute>()))
    out.line(name + "[" + std::to_string(lane) + "] = " + literal(value) + ";");
  return success();
}

/// Any value will do, so no statement is needed to make one.
LogicalResult FunctionEmitter::emit(ub::PoisonOp op) {
  Value result = op.getResult();
  Type type = result.getType();
  if (isa<MemRefType>(type))
    declare(result);
  else if (isa<VectorType>(type))
    scalars[result] = cType(type) + "()";
  else
    scalars[result] = literal(Builder(op).getZeroAttr(type)) +
                      (type.isIndex() && !isNarrow(result) ? "ll" : "");
  return success();
}

LogicalResult FunctionEmitter::emit(arith::SelectOp op) {
  Value result = op.getResult(), yes = op.getTrueValue(),
        no = op.getFalseValue();
  if (isa<MemRefType>(result.getType())) {
    declare(result);
    out.open("if (" + use(op.getCondition()) + ")");
    assign(result, yes);
    out.close(" else {");
    ++out.depth;
    assign(result, no);
    out.close();
    return success();
  }
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string all = v[0] + " ? " + v[1] + " : " + v[2];
    bool back = isNarrow(result) && !(isNarrow(yes) && isNarrow(no));
    return back ? "(int)(" + all + ")" : all;
  });
}

LogicalResult FunctionEmitter::infix(Operation *op, StringRef sign) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return narrow(type, v[0] + " " + sign.str() + " " + v[1]);
  });
}

LogicalResult FunctionEmitter::callOf(Operation *op, const std::string &name) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return narrow(type, name + "(" + llvm::join(v, ", ") + ")");
  });
}

LogicalResult FunctionEmitter::emit(arith::DivFOp op) {
  if (!getElementTypeOrSelf(op.getType()).isF64())
    return callOf(op, helper("mathDivide"));
  if (matchPattern(op.getRhs(), m_AnyZeroFloat()))
    return callOf(op, helper("divideByZero")); // NVRTC warns of a literal
  return infix(op, "/");
}

LogicalResult FunctionEmitter::arithOp(Operation *op) {
  // 8-bit floats are stored and converted, not computed with.
  if (!isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp,
           arith::ConstantOp>(op) &&
      llvm::any_of(op->getOperandTypes(), isFloat8))
    return refuse(op, " for 8-bit floats; extend them first");
  auto ofWidth = [&](std::string name) {
    return name + (getElementTypeOrSelf(op->getResult(0).getType()).isF64()
                       ? ""
                       : "f");
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::ConstantOp, ub::PoisonOp, arith::SelectOp, arith::DivFOp,
            arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(
          [&](auto each) { return emit(each); })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
            arith::IndexCastUIOp>([&](auto) { return integerCast(op); })
      .Case([&](arith::SIToFPOp) { return toFloat(op, true); })
      .Case([&](arith::UIToFPOp) { return toFloat(op, false); })
      .Case([&](arith::FPToSIOp) { return fromFloat(op, true); })
      .Case([&](arith::FPToUIOp) { return fromFloat(op, false); })
      .Case([&](arith::CmpFOp compare) {
        return elementwise(op, [&](ArrayRef<std::string> v) {
          return floatCompare(compare.getPredicate(), v[0], v[1]);
        });
      })
      .Case([&](arith::AddFOp) { return infix(op, "+"); })
      .Case([&](arith::SubFOp) { return infix(op, "-"); })
      .Case([&](arith::MulFOp) { return infix(op, "*"); })
      .Case([&](arith::RemFOp) { return callOf(op, ofWidth("fmod")); })
      .Case([&](arith::MaxNumFOp) { return callOf(op, ofWidth("fmax")); })
      .Case([&](arith::MinNumFOp) { return callOf(op, ofWidth("fmin")); })
      .Case([&](arith::MaximumFOp) { return callOf(op, helper("maximum")); })
      .Case([&](arith::MinimumFOp) { return callOf(op, helper("minimum")); })
      .Case([&](arith::NegFOp negate) {
        return elementwise(op, [&](ArrayRef<std::string> v) {
          return narrow(getElementTypeOrSelf(negate.getType()),
                        "-" + inParentheses(v[0]));
        });
      })
      .Default([&](Operation *) { return integerOp(op); });
}

// The casts of the arith dialect.

/// The element types that a cast is between.
static std::pair<Type, Type> typesOf(Operation *op) {
  return {getElementTypeOrSelf(op->getOperand(0).getType()),
          getElementTypeOrSelf(op->getResult(0).getType())};
}

/// From an integer or index to another one.
LogicalResult FunctionEmitter::integerCast(Operation *op) {
  auto [from, to] = typesOf(op);
  const unsigned fromWidth = widthOf(from), toWidth = widthOf(to);
  Value operand = op->getOperand(0), result = op->getResult(0);
  const bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
  const std::string cast = "(" + (isNarrow(result) ? "int" : cType(to)) + ")";
  if (toWidth == 1)
    return elementwise(
        op, [&](ArrayRef<std::string> v) { return "(" + v[0] + " & 1) != 0"; });
  if (fromWidth == 1)
    return elementwise(op, [&](ArrayRef<std::string> v) {
      return cast + (isUnsigned ? "" : "-(int)") + v[0];
    });
  const bool plain = !isUnsigned || fromWidth >= toWidth ||
                     kernel.ranges.isNonNegative(operand);
  const bool same = plain && !isa<VectorType>(result.getType()) &&
                    typeOf(operand) == typeOf(result);
  const std::string extend = plain ? "" : "(" + unsignedType(from) + ")";
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return same ? v[0] : cast + extend + v[0];
  });
}

LogicalResult FunctionEmitter::toFloat(Operation *op, bool isSigned) {
  auto [from, to] = typesOf(op);
  std::string cast = to.isF64() ? "(double)" : "(float)";
  if (widthOf(from) == 1)
    cast += isSigned ? "-(int)" : "";
  else if (!isSigned && !kernel.ranges.isNonNegative(op->getOperand(0)))
    cast += "(" + unsignedType(from) + ")";
  return elementwise(op, [&, to = to](ArrayRef<std::string> v) {
    return narrow(to, cast + v[0]);
  });
}

LogicalResult FunctionEmitter::fromFloat(Operation *op, bool isSigned) {
  auto [from, to] = typesOf(op);
  const std::string cast = "(" + cType(to) + ")" +
                           (isSigned ? "" : "(" + unsignedType(to) + ")") +
                           (isSmall(from) ? "(float)" : "");
  return elementwise(op, [&](ArrayRef<std::string> v) { return cast + v[0]; });
}

LogicalResult FunctionEmitter::emit(arith::ExtFOp op) {
  auto [from, to] = typesOf(op);
  const bool isSmallFloat = isSmall(from);
  return elementwise(op, [&, to = to](ArrayRef<std::string> v) {
    std::string inner = isSmallFloat ? "(float)" + v[0] : v[0];
    return to.isF32() && isSmallFloat ? inner : cType(to) + "(" + inner + ")";
  });
}

LogicalResult FunctionEmitter::emit(arith::TruncFOp op) {
  if (op.getRoundingmode())
    return refuse(op, " with a rounding mode");
  auto [from, to] = typesOf(op);
  std::string before, after;
  // A double goes through a float whose last bit, once set, says that others
  // were lost: to round to nearest twice is not to round once.
  if (from.isF64() && isSmall(to) && !to.isF16()) {
    before = helper("toOdd") + "(";
    after = ")";
  } else if (isSmall(from)) {
    before = "(float)";
  }
  return elementwise(op, [&, to = to](ArrayRef<std::string> v) {
    return cType(to) + "(" + before + v[0] + after + ")";
  });
}

LogicalResult FunctionEmitter::emit(arith::BitcastOp op) {
  auto [from, to] = typesOf(op);
  const bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  std::string before, after;
  if (cType(from) == cType(to)) {
    // Nothing need be done.
  } else if (fromFloat == toFloat) {
    return refuse(op);
  } else if (!isSmall(to)) {
    before = toFloat
                 ? (to.isF32() ? "__int_as_float(" : "__longlong_as_double(")
                 : (from.isF32() ? "__float_as_int(" : "__double_as_longlong(");
    after = ")";
  } else if (fromFloat) {
    before = "(" + cType(to) + ")";
    after = ".bits";
  } else if (isa<VectorType>(op.getType())) {
    return refuse(op);
  } else {
    declare(op.getResult());
    out.line(scalars[op.getResult()] + ".bits = " + use(op.getIn()) + ";");
    return success();
  }
  return elementwise(
      op, [&](ArrayRef<std::string> v) { return before + v[0] + after; });
}

// The math dialect: CUDA's accurate functions, or, with -DMGPU_FAST_MATH=1,
// the fast ones where there are such.

/// CUDA's name for double; for float it has an f behind it.
static StringRef functionOf(Operation *op) {
  StringRef name = op->getName().stripDialect();
  return llvm::StringSwitch<StringRef>(name)
      .Case("powf", "pow")
      .Case("absf", "fabs")
      .Case("roundeven", "rint")
      .Cases({"sqrt", "rsqrt", "cbrt",  "exp",   "exp2",  "expm1",
              "log",  "log2",  "log10", "log1p", "sin",   "cos",
              "tan",  "asin",  "acos",  "atan",  "atan2", "sinh",
              "cosh", "tanh",  "asinh", "acosh", "atanh", "erf",
              "erfc", "ceil",  "floor", "round", "trunc", "copysign"},
             name)
      .Default("");
}

/// The helper that has a fast form of `function` for float.
static StringRef twoFormsOf(StringRef function) {
  return llvm::StringSwitch<StringRef>(function)
      .Case("exp", "mathExp")
      .Case("exp2", "mathExp2")
      .Case("log", "mathLog")
      .Case("log2", "mathLog2")
      .Case("log10", "mathLog10")
      .Case("sin", "mathSin")
      .Case("cos", "mathCos")
      .Case("tan", "mathTan")
      .Case("pow", "mathPow")
      .Default("");
}

std::string FunctionEmitter::fma(Type type, ArrayRef<std::string> v) {
  const char *name = type.isF64() ? "fma" : "fmaf";
  return narrow(type, (widthOf(type) < 32 ? helper("fmaToOdd") : name) + "(" +
                          llvm::join(v, ", ") + ")");
}

LogicalResult FunctionEmitter::emit(math::AbsIOp op) {
  Type type = getElementTypeOrSelf(op.getType());
  // The most negative number is its own absolute value.
  std::string zero = widthOf(type) == 64 ? "0ll" : "0";
  bool wraps = widthOf(type) >= 32;
  if (wraps)
    helper("wrap");
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string x = type.isIndex() ? "(long long)" + v[0] : v[0];
    std::string minus =
        wraps ? "wrapSub(" + zero + ", " + x + ")" : "-" + inParentheses(x);
    return narrow(type, x + " < 0 ? " + minus + " : " + x);
  });
}

/// Counts of the bits that are set, and of zeros before or behind them.
LogicalResult FunctionEmitter::countBits(Operation *op) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  unsigned width = widthOf(type);
  bool isLong = width == 64;
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string x = "(" + unsignedType(type) + ")" + v[0];
    if (isa<math::CtPopOp>(op))
      return (isLong ? "__popcll(" : "__popc(") + x + ")";
    if (isa<math::CountLeadingZerosOp>(op))
      return (isLong ? "__clzll((long long)" : "__clz((int)") + x + ")" +
             (width < 32 ? " - " + std::to_string(32 - width) : "");
    return v[0] + " == 0 ? " + std::to_string(width) + " : " +
           (isLong ? "__ffsll((long long)" : "__ffs((int)") + x + ") - 1";
  });
}

LogicalResult FunctionEmitter::mathOp(Operation *op) {
  if (op->getNumResults() != 1)
    return refuse(op);
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  if (isa<FloatType>(from) && widthOf(from) == 8)
    return refuse(op, " for 8-bit floats; extend them first");
  if (StringRef function = functionOf(op); !function.empty()) {
    StringRef twoForms = type.isF64() ? "" : twoFormsOf(function);
    return callOf(op, !twoForms.empty()
                          ? helper(twoForms)
                          : function.str() + (type.isF64() ? "" : "f"));
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](math::FmaOp) {
        return elementwise(
            op, [&](ArrayRef<std::string> v) { return fma(type, v); });
      })
      .Case([&](math::AbsIOp each) { return emit(each); })
      .Case<math::CtPopOp, math::CountLeadingZerosOp,
            math::CountTrailingZerosOp>([&](auto) { return countBits(op); })
      .Case([&](math::IPowIOp) {
        return callOf(op, helper("integerPower") +
                              (widthOf(type) == 64 ? "<long long>" : "<int>"));
      })
      .Case([&](math::FPowIOp) {
        return callOf(op, helper("floatPower") +
                              (type.isF64() ? "<double>" : "<float>"));
      })
      .Default([&](Operation *) { return refuse(op); });
}

} // namespace mgpu::kernels::cuda
