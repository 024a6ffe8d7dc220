// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers of the arith dialect, and the index dialect, which has the same
// operations for its one type.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

std::string FunctionEmitter::narrow(Type type, const std::string &expression) {
  if (!isSmall(type))
    return expression;
  // "signed char(x)" is not C++.
  return isa<FloatType>(type) ? cType(type) + "(" + expression + ")"
                              : "(" + cType(type) + ")(" + expression + ")";
}

LogicalResult FunctionEmitter::addSubMul(Operation *op, char sign) {
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
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  const bool noOverflow = flags && flags.hasNoSignedWrap();
  // If all three fit an int, so does every step.
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

/// A predicate as both dialects spell it: "eq", "slt", "uge".
LogicalResult FunctionEmitter::compare(Operation *op, StringRef predicate) {
  const bool isEquality = predicate == "eq" || predicate == "ne",
             isSigned = !predicate.starts_with("u");
  StringRef sign = llvm::StringSwitch<StringRef>(predicate)
                       .Case("eq", "==")
                       .Case("ne", "!=")
                       .EndsWith("lt", "<")
                       .EndsWith("le", "<=")
                       .EndsWith("gt", ">")
                       .EndsWith("ge", ">=");
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
  std::string function =
      helper(name) + (widthOf(type) < 64 ? "<int>(" : "<long long>(");
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string call = function + v[0] + ", " + v[1] + ")";
    return isNarrow(op->getResult(0)) ? "(int)" + call : call;
  });
}

LogicalResult FunctionEmitter::ceilDivUnsigned(Operation *op) {
  Value result = op->getResult(0);
  Type type = getElementTypeOrSelf(result.getType());
  std::string cast = "(" + unsignedType(type) + ")";
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string a = cast + v[0], b = cast + v[1];
    return "(" + (isNarrow(result) ? std::string("int") : cType(type)) + ")(" +
           a + " / " + b + " + (" + a + " % " + b + " != 0))";
  });
}

LogicalResult FunctionEmitter::bitwise(Operation *op, char sign) {
  Value result = op->getResult(0);
  Type type = getElementTypeOrSelf(result.getType());
  return elementwise(op, [&](ArrayRef<std::string> v) {
    std::string all = v[0] + " " + sign + " " + v[1];
    return isNarrow(result) ? "(int)(" + all + ")" : narrow(type, all);
  });
}

LogicalResult FunctionEmitter::shift(Operation *op, StringRef sign,
                                     bool isSigned) {
  Value result = op->getResult(0);
  Type type = getElementTypeOrSelf(result.getType());
  std::string back = isNarrow(result) ? "int" : cType(type);
  std::string cast = !isSigned        ? "(" + unsignedType(type) + ")"
                     : type.isIndex() ? "(long long)"
                                      : "";
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return "(" + back + ")(" + cast + v[0] + " " + sign.str() + " " + v[1] +
           ")";
  });
}

/// arith.addui_extended, mulsi_extended and mului_extended: both words of
/// scalars (ExpandOps.h).
LogicalResult FunctionEmitter::extended(Operation *op) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  Type type = a.getType();
  const unsigned width = widthOf(type);
  const std::string u = "(" + unsignedType(type) + ")";
  auto give = [&](unsigned k, const std::string &value) {
    Value result = op->getResult(k);
    bind(result, "(" + typeOf(result) + ")(" + value + ")");
  };
  if (isa<arith::AddUIExtendedOp>(op)) {
    // A narrow sum is promoted to an int: cut it first.
    const std::string sum = u + "(" + u + use(a) + " + " + u + use(b) + ")";
    give(0, sum);
    give(1, sum + " < " + u + use(a));
    return success();
  }
  const bool isSigned = isa<arith::MulSIExtendedOp>(op);
  if (width < 64) {
    const std::string asLongLong =
        isSigned ? "(long long)" : "(unsigned long long)" + u;
    const std::string product =
        asLongLong + use(a) + " * " + (isSigned ? "" : u) + use(b);
    give(0, product);
    give(1, "(" + product + ") >> " + std::to_string(width));
    return success();
  }
  give(0, "(unsigned long long)" + use(a) + " * (unsigned long long)" + use(b));
  give(1, isSigned ? "__mul64hi(" + use(a) + ", " + use(b) + ")"
                   : "__umul64hi((unsigned long long)" + use(a) +
                         ", (unsigned long long)" + use(b) + ")");
  return success();
}

LogicalResult FunctionEmitter::emitIndexCast(Operation *op) {
  Value from = op->getOperand(0), result = op->getResult(0);
  bool isUnsigned = isa<index::CastUOp>(op) && widthOf(from.getType()) < 64 &&
                    !kernel.ranges.isNonNegative(from);
  bind(result, "(" + typeOf(result) + ")" +
                   (isUnsigned ? asUnsigned(from) : use(from)));
  return success();
}

LogicalResult FunctionEmitter::integerOp(Operation *op) {
  using namespace arith;
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<AddIOp, index::AddOp>([&](auto) { return addSubMul(op, '+'); })
      .Case<SubIOp, index::SubOp>([&](auto) { return addSubMul(op, '-'); })
      .Case<MulIOp, index::MulOp>([&](auto) { return addSubMul(op, '*'); })
      .Case<AddUIExtendedOp, MulSIExtendedOp, MulUIExtendedOp>(
          [&](auto) { return extended(op); })
      .Case<DivSIOp, index::DivSOp>([&](auto) { return divide(op, '/', true); })
      .Case<DivUIOp, index::DivUOp>(
          [&](auto) { return divide(op, '/', false); })
      .Case<RemSIOp, index::RemSOp>([&](auto) { return divide(op, '%', true); })
      .Case<RemUIOp, index::RemUOp>(
          [&](auto) { return divide(op, '%', false); })
      .Case<FloorDivSIOp, index::FloorDivSOp>(
          [&](auto) { return rounded(op, "floorDiv"); })
      .Case<CeilDivSIOp, index::CeilDivSOp>(
          [&](auto) { return rounded(op, "ceilDiv"); })
      .Case<CeilDivUIOp, index::CeilDivUOp>(
          [&](auto) { return ceilDivUnsigned(op); })
      .Case<AndIOp, index::AndOp>([&](auto) { return bitwise(op, '&'); })
      .Case<OrIOp, index::OrOp>([&](auto) { return bitwise(op, '|'); })
      .Case<XOrIOp, index::XOrOp>([&](auto) { return bitwise(op, '^'); })
      .Case<ShLIOp, index::ShlOp>([&](auto) { return shift(op, "<<", false); })
      .Case<ShRSIOp, index::ShrSOp>([&](auto) { return shift(op, ">>", true); })
      .Case<ShRUIOp, index::ShrUOp>(
          [&](auto) { return shift(op, ">>", false); })
      .Case<MaxSIOp, index::MaxSOp>([&](auto) { return minMax(op, '>', true); })
      .Case<MinSIOp, index::MinSOp>([&](auto) { return minMax(op, '<', true); })
      .Case<MaxUIOp, index::MaxUOp>(
          [&](auto) { return minMax(op, '>', false); })
      .Case<MinUIOp, index::MinUOp>(
          [&](auto) { return minMax(op, '<', false); })
      .Case([&](CmpIOp each) {
        return compare(op, stringifyCmpIPredicate(each.getPredicate()));
      })
      .Case([&](index::CmpOp each) {
        return compare(op, stringifyIndexCmpPredicate(each.getPred()));
      })
      .Case<index::CastSOp, index::CastUOp>(
          [&](auto) { return emitIndexCast(op); })
      .Case([&](index::SizeOfOp size) {
        bind(size, std::to_string(widthOf(size.getType())));
        return success();
      })
      .Default([&](Operation *) { return refuse(op); });
}

} // namespace mgpu::kernels::cuda
