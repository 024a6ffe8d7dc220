// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arith and index dialects.
#include "kernels/emit/cuda/CudaTypes.h"
#include "kernels/emit/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// Whether the type's arithmetic is computed in float, or in int, and must be
/// brought back to it.
static bool isSmall(Type type) {
  unsigned width = widthOf(type);
  return isa<FloatType>(type) ? width < 32 : width < 32;
}

static bool isFloat8(Type type) {
  return isa<FloatType>(type) && widthOf(type) == 8;
}

std::string FunctionEmitter::narrow(Type type, const std::string &expression) {
  if (!isSmall(type))
    return expression;
  // "signed char(x)" is no C++.
  return isa<FloatType>(type) ? cType(type) + "(" + expression + ")"
                              : "(" + cType(type) + ")(" + expression + ")";
}

LogicalResult FunctionEmitter::addSubMul(Operation *op, char sign,
                                         bool noOverflow) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Value a = op->getOperand(0), b = op->getOperand(1);
  unsigned width = widthOf(type);
  if (width == 1)
    return elementwise(op, [&](ArrayRef<std::string> v) {
      return v[0] + (sign == '*' ? " & " : " != ") + v[1];
    });
  if (width < 32) // the promoted product fits an int
    return elementwise(op, [&](ArrayRef<std::string> v) {
      return "(" + cType(type) + ")(" + v[0] + " " + sign + " " + v[1] + ")";
    });
  // All three fit an int: so does every step.
  bool isInt = isNarrow(op->getResult(0)) && isNarrow(a) && isNarrow(b);
  if (isInt || noOverflow || kernel.ranges.cannotOverflow(a, b, sign))
    return elementwise(op, [&](ArrayRef<std::string> v) {
      std::string first = v[0];
      if (!isInt && isNarrow(a) && isNarrow(b))
        first = "(long long)" + first;
      std::string all = first + " " + sign + " " + v[1];
      return isNarrow(op->getResult(0)) && !isInt ? "(int)(" + all + ")" : all;
    });
  std::string name = helper("wrap") + (sign == '+'   ? "Add"
                                       : sign == '-' ? "Sub"
                                                     : "Mul");
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string call = name + "(" +
                       (isNarrow(a) ? "(long long)" + v[0] : v[0]) + ", " +
                       (isNarrow(b) ? "(long long)" + v[1] : v[1]) + ")";
    return isNarrow(op->getResult(0)) ? "(int)" + call : call;
  });
}

/// Casts both operands to what their unsigned value needs, unless they are
/// surely not negative.
LogicalResult FunctionEmitter::divide(Operation *op, char sign, bool isSigned) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  Type type = getElementTypeOrSelf(a.getType());
  if (widthOf(type) == 1)
    return refuse(op, " for i1");
  bool plain = isSigned || (kernel.ranges.isNonNegative(a) &&
                            kernel.ranges.isNonNegative(b));
  std::string cast = plain ? "" : "(" + unsignedType(type) + ")";
  std::string back = typeOf(op->getResult(0));
  if (auto vector = dyn_cast<VectorType>(op->getResult(0).getType()))
    back = cType(vector.getElementType());
  bool same = plain && !isSmall(type) &&
              isNarrow(op->getResult(0)) == (isNarrow(a) && isNarrow(b));
  return elementwise(op, [&](ArrayRef<std::string> v) {
    // INT_MIN / -1 as an int would trap where the 64-bit quotient is fine.
    std::string first =
        plain && isNarrow(a) && isNarrow(b) && !isNarrow(op->getResult(0))
            ? "(long long)" + v[0]
            : cast + v[0];
    std::string all = first + " " + sign + " " + cast + v[1];
    return same || (plain && !isSmall(type) && !isNarrow(op->getResult(0)))
               ? all
               : "(" + back + ")(" + all + ")";
  });
}

LogicalResult FunctionEmitter::compare(Operation *op, StringRef sign,
                                       bool isSigned, bool isEquality) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  Type type = getElementTypeOrSelf(a.getType());
  std::string cast;
  if (widthOf(type) == 1)
    cast = isSigned && !isEquality ? "-(int)" : "";
  else if (!isSigned && !isEquality &&
           !(kernel.ranges.isNonNegative(a) && kernel.ranges.isNonNegative(b)))
    cast = "(" + unsignedType(type) + ")";
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return cast + v[0] + " " + sign.str() + " " + cast + v[1];
  });
}

LogicalResult FunctionEmitter::minMax(Operation *op, char sign, bool isSigned) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  Type type = getElementTypeOrSelf(a.getType());
  std::string cast;
  if (widthOf(type) == 1)
    cast = isSigned ? "-(int)" : "";
  else if (!isSigned &&
           !(kernel.ranges.isNonNegative(a) && kernel.ranges.isNonNegative(b)))
    cast = "(" + unsignedType(type) + ")";
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string all = cast + v[0] + " " + sign + " " + cast + v[1] + " ? " +
                      v[0] + " : " + v[1];
    bool back = isNarrow(op->getResult(0)) && !(isNarrow(a) && isNarrow(b));
    return back ? "(int)(" + all + ")" : all;
  });
}

/// ceildiv and floordiv, signed.
LogicalResult FunctionEmitter::rounded(Operation *op, StringRef name) {
  Type type = getElementTypeOrSelf(op->getOperand(0).getType());
  if (widthOf(type) == 1)
    return refuse(op, " for i1");
  std::string function =
      helper(name) + (widthOf(type) < 64 ? "<int>(" : "<long long>(");
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string call = function + v[0] + ", " + v[1] + ")";
    return isNarrow(op->getResult(0)) ? "(int)" + call : call;
  });
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

static bool hasNoSignedWrap(arith::IntegerOverflowFlags flags) {
  return bitEnumContainsAll(flags, arith::IntegerOverflowFlags::nsw);
}

FailureOr<bool> FunctionEmitter::arithOp(Operation *op) {
  if (!isa<arith::ArithDialect, ub::UBDialect>(op->getDialect()))
    return false;
  Type type = op->getNumResults()
                  ? getElementTypeOrSelf(op->getResult(0).getType())
                  : Type();
  // 8-bit floats are stored and converted, not computed with.
  if (!isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp,
           arith::ConstantOp>(op))
    for (Type operand : op->getOperandTypes())
      if (isFloat8(getElementTypeOrSelf(operand)))
        return refuse(op, " for 8-bit floats; extend them first");
  auto each = [&](llvm::function_ref<std::string(ArrayRef<std::string>)> f)
      -> FailureOr<bool> {
    if (failed(elementwise(op, f)))
      return failure();
    return true;
  };
  auto done = [](LogicalResult result) -> FailureOr<bool> {
    if (failed(result))
      return failure();
    return true;
  };
  auto infix = [&](const char *sign) {
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, v[0] + " " + sign + " " + v[1]);
    });
  };
  auto call = [&](const std::string &name) {
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, name + "(" + v[0] + ", " + v[1] + ")");
    });
  };
  const char *suffix = type && type.isF64() ? "" : "f";

  if (auto constant = dyn_cast<arith::ConstantOp>(op)) { // of a vector
    auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!values)
      return refuse(op);
    declare(op->getResult(0));
    std::string name = scalars[op->getResult(0)];
    unsigned lane = 0;
    for (Attribute value : values.getValues<Attribute>())
      out.line(name + "[" + std::to_string(lane++) + "] = " + literal(value) +
               ";");
    return true;
  }
  if (isa<ub::PoisonOp>(op)) {
    declare(op->getResult(0));
    return true;
  }
  if (auto add = dyn_cast<arith::AddIOp>(op))
    return done(addSubMul(op, '+', hasNoSignedWrap(add.getOverflowFlags())));
  if (auto sub = dyn_cast<arith::SubIOp>(op))
    return done(addSubMul(op, '-', hasNoSignedWrap(sub.getOverflowFlags())));
  if (auto mul = dyn_cast<arith::MulIOp>(op))
    return done(addSubMul(op, '*', hasNoSignedWrap(mul.getOverflowFlags())));
  if (isa<arith::DivSIOp>(op))
    return done(divide(op, '/', true));
  if (isa<arith::DivUIOp>(op))
    return done(divide(op, '/', false));
  if (isa<arith::RemSIOp>(op))
    return done(divide(op, '%', true));
  if (isa<arith::RemUIOp>(op))
    return done(divide(op, '%', false));
  if (isa<arith::FloorDivSIOp>(op))
    return done(rounded(op, "floorDiv"));
  if (isa<arith::CeilDivSIOp>(op))
    return done(rounded(op, "ceilDiv"));
  if (isa<arith::CeilDivUIOp>(op)) {
    if (widthOf(type) == 1)
      return refuse(op, " for i1");
    std::string cast = "(" + unsignedType(type) + ")";
    return each([&](ArrayRef<std::string> v) {
      std::string a = cast + v[0], b = cast + v[1];
      return "(" +
             (isNarrow(op->getResult(0)) ? std::string("int") : cType(type)) +
             ")(" + a + " / " + b + " + (" + a + " % " + b + " != 0))";
    });
  }
  if (isa<arith::AndIOp>(op))
    return each([&](ArrayRef<std::string> v) {
      std::string all = v[0] + " & " + v[1];
      return isNarrow(op->getResult(0)) ? "(int)(" + all + ")"
                                        : narrow(type, all);
    });
  if (isa<arith::OrIOp>(op))
    return each([&](ArrayRef<std::string> v) {
      std::string all = v[0] + " | " + v[1];
      return isNarrow(op->getResult(0)) ? "(int)(" + all + ")"
                                        : narrow(type, all);
    });
  if (isa<arith::XOrIOp>(op))
    return each([&](ArrayRef<std::string> v) {
      std::string all = v[0] + " ^ " + v[1];
      return isNarrow(op->getResult(0)) ? "(int)(" + all + ")"
                                        : narrow(type, all);
    });
  if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op)) {
    if (widthOf(type) == 1)
      return refuse(op, " for i1");
    std::string back = isNarrow(op->getResult(0)) ? "int" : cType(type);
    std::string cast = isa<arith::ShRSIOp>(op)
                           ? (type.isIndex() ? "(long long)" : "")
                           : "(" + unsignedType(type) + ")";
    const char *sign = isa<arith::ShLIOp>(op) ? " << " : " >> ";
    return each([&](ArrayRef<std::string> v) {
      return "(" + back + ")(" + cast + v[0] + sign + v[1] + ")";
    });
  }
  if (isa<arith::MaxSIOp>(op))
    return done(minMax(op, '>', true));
  if (isa<arith::MinSIOp>(op))
    return done(minMax(op, '<', true));
  if (isa<arith::MaxUIOp>(op))
    return done(minMax(op, '>', false));
  if (isa<arith::MinUIOp>(op))
    return done(minMax(op, '<', false));
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    switch (cmp.getPredicate()) {
    case P::eq:
      return done(compare(op, "==", true, true));
    case P::ne:
      return done(compare(op, "!=", true, true));
    case P::slt:
      return done(compare(op, "<", true, false));
    case P::sle:
      return done(compare(op, "<=", true, false));
    case P::sgt:
      return done(compare(op, ">", true, false));
    case P::sge:
      return done(compare(op, ">=", true, false));
    case P::ult:
      return done(compare(op, "<", false, false));
    case P::ule:
      return done(compare(op, "<=", false, false));
    case P::ugt:
      return done(compare(op, ">", false, false));
    case P::uge:
      return done(compare(op, ">=", false, false));
    }
  }
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return each([&](ArrayRef<std::string> v) {
      return floatCompare(cmp.getPredicate(), v[0], v[1]);
    });
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (isa<MemRefType>(op->getResult(0).getType())) {
      declare(op->getResult(0));
      out.open("if (" + use(select.getCondition()) + ")");
      assign(op->getResult(0), select.getTrueValue());
      out.close(" else {");
      ++out.depth;
      assign(op->getResult(0), select.getFalseValue());
      out.close();
      return true;
    }
    return each([&](ArrayRef<std::string> v) {
      std::string all = v[0] + " ? " + v[1] + " : " + v[2];
      bool back =
          isNarrow(op->getResult(0)) && !(isNarrow(select.getTrueValue()) &&
                                          isNarrow(select.getFalseValue()));
      return back ? "(int)(" + all + ")" : all;
    });
  }
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
          arith::IndexCastUIOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
    std::string to = isNarrow(op->getResult(0)) ? "int" : cType(type);
    if (widthOf(type) == 1)
      return each(
          [&](ArrayRef<std::string> v) { return "(" + v[0] + " & 1) != 0"; });
    if (widthOf(from) == 1)
      return each([&](ArrayRef<std::string> v) {
        return "(" + to + ")" + (isUnsigned ? "" : "-(int)") + v[0];
      });
    return each([&](ArrayRef<std::string> v) {
      std::string source = v[0];
      bool plain = !isUnsigned || widthOf(from) >= widthOf(type) ||
                   kernel.ranges.isNonNegative(op->getOperand(0));
      if (!plain)
        source = "(" + unsignedType(from) + ")" + source;
      bool same = plain && !isa<VectorType>(op->getResult(0).getType()) &&
                  typeOf(op->getOperand(0)) == typeOf(op->getResult(0));
      return same ? source : "(" + to + ")" + source;
    });
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    std::string cast;
    if (widthOf(from) == 1)
      cast = isa<arith::SIToFPOp>(op) ? "-(int)" : "";
    else if (isa<arith::UIToFPOp>(op) &&
             !kernel.ranges.isNonNegative(op->getOperand(0)))
      cast = "(" + unsignedType(from) + ")";
    std::string to = type.isF64() ? "(double)" : "(float)";
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, to + cast + v[0]);
    });
  }
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    if (widthOf(type) == 1)
      return refuse(op, " for i1");
    std::string from =
        widthOf(getElementTypeOrSelf(op->getOperand(0).getType())) < 32
            ? "(float)"
            : "";
    std::string through =
        isa<arith::FPToUIOp>(op) ? "(" + unsignedType(type) + ")" : "";
    return each([&](ArrayRef<std::string> v) {
      return "(" + cType(type) + ")" + through + from + v[0];
    });
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    if (auto truncate = dyn_cast<arith::TruncFOp>(op)) {
      if (truncate.getRoundingmode())
        return refuse(op, " with a rounding mode");
      // Twice rounded is not once rounded.
      if (from.isF64() && widthOf(type) < 32 && !type.isF16())
        return refuse(op, " from f64; go through f32 if that is meant");
      if (isSmall(from) && isSmall(type) && from != type)
        return each([&](ArrayRef<std::string> v) {
          return cType(type) + "((float)" + v[0] + ")";
        });
    }
    return each([&](ArrayRef<std::string> v) {
      std::string inner = isSmall(from) ? "(float)" + v[0] : v[0];
      return type.isF32() && isSmall(from) ? inner
                                           : cType(type) + "(" + inner + ")";
    });
  }
  if (isa<arith::BitcastOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    if (cType(from) == cType(type))
      return each([&](ArrayRef<std::string> v) { return v[0]; });
    if (from.isInteger(32) && type.isF32())
      return each([&](ArrayRef<std::string> v) {
        return "__int_as_float(" + v[0] + ")";
      });
    if (from.isF32() && type.isInteger(32))
      return each([&](ArrayRef<std::string> v) {
        return "__float_as_int(" + v[0] + ")";
      });
    if (from.isInteger(64) && type.isF64())
      return each([&](ArrayRef<std::string> v) {
        return "__longlong_as_double(" + v[0] + ")";
      });
    if (from.isF64() && type.isInteger(64))
      return each([&](ArrayRef<std::string> v) {
        return "__double_as_longlong(" + v[0] + ")";
      });
    if (isa<FloatType>(from) && isa<IntegerType>(type))
      return each([&](ArrayRef<std::string> v) {
        return "(" + cType(type) + ")" + v[0] + ".bits";
      });
    if (isa<IntegerType>(from) && isa<FloatType>(type) &&
        !isa<VectorType>(op->getResult(0).getType())) {
      declare(op->getResult(0));
      out.line(scalars[op->getResult(0)] + ".bits = " + use(op->getOperand(0)) +
               ";");
      return true;
    }
    return refuse(op);
  }
  if (isa<arith::AddFOp>(op))
    return infix("+");
  if (isa<arith::SubFOp>(op))
    return infix("-");
  if (isa<arith::MulFOp>(op))
    return infix("*");
  if (isa<arith::DivFOp>(op))
    return type.isF64() ? infix("/") : call(helper("mathDivide"));
  if (isa<arith::RemFOp>(op))
    return call(std::string("fmod") + suffix);
  if (isa<arith::NegFOp>(op))
    return each(
        [&](ArrayRef<std::string> v) { return narrow(type, "-" + v[0]); });
  if (isa<arith::MaximumFOp>(op))
    return each([&](ArrayRef<std::string> v) {
      return helper("maximum") + "(" + v[0] + ", " + v[1] + ")";
    });
  if (isa<arith::MinimumFOp>(op))
    return each([&](ArrayRef<std::string> v) {
      return helper("minimum") + "(" + v[0] + ", " + v[1] + ")";
    });
  if (isa<arith::MaxNumFOp>(op))
    return call(std::string("fmax") + suffix);
  if (isa<arith::MinNumFOp>(op))
    return call(std::string("fmin") + suffix);
  return false;
}

FailureOr<bool> FunctionEmitter::indexOp(Operation *op) {
  if (!isa<index::IndexDialect>(op->getDialect()))
    return false;
  auto done = [](LogicalResult result) -> FailureOr<bool> {
    if (failed(result))
      return failure();
    return true;
  };
  if (isa<index::AddOp>(op))
    return done(addSubMul(op, '+', false));
  if (isa<index::SubOp>(op))
    return done(addSubMul(op, '-', false));
  if (isa<index::MulOp>(op))
    return done(addSubMul(op, '*', false));
  if (isa<index::DivSOp>(op))
    return done(divide(op, '/', true));
  if (isa<index::DivUOp>(op))
    return done(divide(op, '/', false));
  if (isa<index::RemSOp>(op))
    return done(divide(op, '%', true));
  if (isa<index::RemUOp>(op))
    return done(divide(op, '%', false));
  if (isa<index::FloorDivSOp>(op))
    return done(rounded(op, "floorDiv"));
  if (isa<index::CeilDivSOp>(op))
    return done(rounded(op, "ceilDiv"));
  if (isa<index::MaxSOp>(op))
    return done(minMax(op, '>', true));
  if (isa<index::MinSOp>(op))
    return done(minMax(op, '<', true));
  if (isa<index::MaxUOp>(op))
    return done(minMax(op, '>', false));
  if (isa<index::MinUOp>(op))
    return done(minMax(op, '<', false));
  if (isa<index::CastSOp, index::CastUOp>(op)) {
    std::string to =
        isNarrow(op->getResult(0)) ? "int" : cType(op->getResult(0).getType());
    Type from = op->getOperand(0).getType();
    bool isUnsigned = isa<index::CastUOp>(op) && widthOf(from) < 64 &&
                      !kernel.ranges.isNonNegative(op->getOperand(0));
    bind(op->getResult(0), "(" + to + ")" +
                               (isUnsigned ? asUnsigned(op->getOperand(0))
                                           : use(op->getOperand(0))));
    return true;
  }
  if (auto cmp = dyn_cast<index::CmpOp>(op)) {
    using P = index::IndexCmpPredicate;
    switch (cmp.getPred()) {
    case P::EQ:
      return done(compare(op, "==", true, true));
    case P::NE:
      return done(compare(op, "!=", true, true));
    case P::SLT:
      return done(compare(op, "<", true, false));
    case P::SLE:
      return done(compare(op, "<=", true, false));
    case P::SGT:
      return done(compare(op, ">", true, false));
    case P::SGE:
      return done(compare(op, ">=", true, false));
    case P::ULT:
      return done(compare(op, "<", false, false));
    case P::ULE:
      return done(compare(op, "<=", false, false));
    case P::UGT:
      return done(compare(op, ">", false, false));
    case P::UGE:
      return done(compare(op, ">=", false, false));
    }
  }
  return false;
}

} // namespace mgpu::kernels::cuda
