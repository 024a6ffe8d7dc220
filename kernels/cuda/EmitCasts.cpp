// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The casts of the arith dialect.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

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

} // namespace mgpu::kernels::cuda
