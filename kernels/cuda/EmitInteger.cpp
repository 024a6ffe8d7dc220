// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on integers of any dialect, and the index dialect.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

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
    const std::string wide =
        isSigned ? "(long long)" : "(unsigned long long)" + u;
    const std::string product =
        wide + use(a) + " * " + (isSigned ? "" : u) + use(b);
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
  if (isa<index::CeilDivUOp>(op))
    return done(ceilDivUnsigned(op));
  if (isa<index::AndOp>(op))
    return done(bitwise(op, '&'));
  if (isa<index::OrOp>(op))
    return done(bitwise(op, '|'));
  if (isa<index::XOrOp>(op))
    return done(bitwise(op, '^'));
  if (isa<index::ShlOp>(op))
    return done(shift(op, "<<", false));
  if (isa<index::ShrSOp>(op))
    return done(shift(op, ">>", true));
  if (isa<index::ShrUOp>(op))
    return done(shift(op, ">>", false));
  if (isa<index::SizeOfOp>(op)) {
    bind(op->getResult(0), std::to_string(widthOf(op->getResult(0).getType())));
    return true;
  }
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
