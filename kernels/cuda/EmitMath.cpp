// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The math dialect: CUDA's accurate functions, or, with -DMGPU_FAST_MATH=1,
// the fast ones where there are such.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

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
