// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arith dialect.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

static bool isFloat8(Type type) {
  return isa<FloatType>(type) && widthOf(type) == 8;
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
  if (isa<ub::PoisonOp>(op)) { // any value, which no statement need make
    Value result = op->getResult(0);
    if (isa<MemRefType>(result.getType()))
      declare(result);
    else if (isa<VectorType>(result.getType()))
      scalars[result] = cType(result.getType()) + "()";
    else
      scalars[result] =
          literal(Builder(op).getZeroAttr(result.getType())) +
          (result.getType().isIndex() && !isNarrow(result) ? "ll" : "");
    return true;
  }
  if (auto add = dyn_cast<arith::AddIOp>(op))
    return done(addSubMul(op, '+', hasNoSignedWrap(add.getOverflowFlags())));
  if (auto sub = dyn_cast<arith::SubIOp>(op))
    return done(addSubMul(op, '-', hasNoSignedWrap(sub.getOverflowFlags())));
  if (auto mul = dyn_cast<arith::MulIOp>(op))
    return done(addSubMul(op, '*', hasNoSignedWrap(mul.getOverflowFlags())));
  if (isa<arith::AddUIExtendedOp, arith::MulSIExtendedOp,
          arith::MulUIExtendedOp>(op))
    return done(extended(op));
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
  if (isa<arith::CeilDivUIOp>(op))
    return done(ceilDivUnsigned(op));
  if (isa<arith::AndIOp>(op))
    return done(bitwise(op, '&'));
  if (isa<arith::OrIOp>(op))
    return done(bitwise(op, '|'));
  if (isa<arith::XOrIOp>(op))
    return done(bitwise(op, '^'));
  if (isa<arith::ShLIOp>(op))
    return done(shift(op, "<<", false));
  if (isa<arith::ShRSIOp>(op))
    return done(shift(op, ">>", true));
  if (isa<arith::ShRUIOp>(op))
    return done(shift(op, ">>", false));
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
      // To a float first, where a last bit that is set says that others were
      // lost: twice rounded to nearest is not once rounded.
      if (from.isF64() && widthOf(type) < 32 && !type.isF16())
        return each([&](ArrayRef<std::string> v) {
          return cType(type) + "(" + helper("toOdd") + "(" + v[0] + "))";
        });
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
    return !type.isF64() ? call(helper("mathDivide"))
           : matchPattern(op->getOperand(1), m_AnyZeroFloat())
               ? call(helper("divideByZero")) // NVRTC warns of a literal
               : infix("/");
  if (isa<arith::RemFOp>(op))
    return call(std::string("fmod") + suffix);
  if (isa<arith::NegFOp>(op))
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, "-" + inParentheses(v[0]));
    });
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

} // namespace mgpu::kernels::cuda
