// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The math dialect: CUDA's accurate functions, or, with -DMGPU_FAST_MATH=1,
// the fast ones where there are such.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// CUDA's name for double; for float it has an f behind it.
static StringRef functionOf(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().stripDialect())
      .Case("sqrt", "sqrt")
      .Case("rsqrt", "rsqrt")
      .Case("cbrt", "cbrt")
      .Case("exp", "exp")
      .Case("exp2", "exp2")
      .Case("expm1", "expm1")
      .Case("log", "log")
      .Case("log2", "log2")
      .Case("log10", "log10")
      .Case("log1p", "log1p")
      .Case("sin", "sin")
      .Case("cos", "cos")
      .Case("tan", "tan")
      .Case("asin", "asin")
      .Case("acos", "acos")
      .Case("atan", "atan")
      .Case("atan2", "atan2")
      .Case("sinh", "sinh")
      .Case("cosh", "cosh")
      .Case("tanh", "tanh")
      .Case("asinh", "asinh")
      .Case("acosh", "acosh")
      .Case("atanh", "atanh")
      .Case("erf", "erf")
      .Case("erfc", "erfc")
      .Case("powf", "pow")
      .Case("absf", "fabs")
      .Case("ceil", "ceil")
      .Case("floor", "floor")
      .Case("round", "round")
      .Case("roundeven", "rint")
      .Case("trunc", "trunc")
      .Case("copysign", "copysign")
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

FailureOr<bool> FunctionEmitter::mathOp(Operation *op) {
  if (!isa<math::MathDialect>(op->getDialect()) || op->getNumResults() != 1)
    return false;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  auto each = [&](llvm::function_ref<std::string(ArrayRef<std::string>)> f)
      -> FailureOr<bool> {
    if (failed(elementwise(op, f)))
      return failure();
    return true;
  };
  if (isa<FloatType>(from) && widthOf(from) == 8)
    return refuse(op, " for 8-bit floats; extend them first");
  if (isa<math::FmaOp>(op))
    return each([&](ArrayRef<std::string> v) { return fma(type, v); });
  if (StringRef function = functionOf(op); !function.empty()) {
    std::string name = function.str();
    if (!type.isF64()) {
      StringRef twoForms = twoFormsOf(function);
      name = twoForms.empty() ? name + "f" : helper(twoForms);
    }
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, name + "(" + llvm::join(v, ", ") + ")");
    });
  }
  if (isa<math::AbsIOp>(op)) {
    // Of the most negative number it is that number.
    std::string zero = widthOf(type) == 64 ? "0ll" : "0";
    bool wraps = widthOf(type) >= 32;
    if (wraps)
      helper("wrap");
    return each([&](ArrayRef<std::string> v) {
      std::string x = type.isIndex() ? "(long long)" + v[0] : v[0];
      std::string minus =
          wraps ? "wrapSub(" + zero + ", " + x + ")" : "-" + inParentheses(x);
      return narrow(type, x + " < 0 ? " + minus + " : " + x);
    });
  }
  if (isa<math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp>(
          op)) {
    unsigned width = widthOf(type);
    bool isLong = width == 64;
    std::string bits = std::to_string(width);
    return each([&](ArrayRef<std::string> v) {
      std::string x = "(" + unsignedType(type) + ")" + v[0];
      if (isa<math::CtPopOp>(op))
        return (isLong ? "__popcll(" : "__popc(") + x + ")";
      if (isa<math::CountLeadingZerosOp>(op))
        return (isLong ? "__clzll((long long)" : "__clz((int)") + x + ")" +
               (width < 32 ? " - " + std::to_string(32 - width) : "");
      return v[0] + " == 0 ? " + bits + " : " +
             (isLong ? "__ffsll((long long)" : "__ffs((int)") + x + ") - 1";
    });
  }
  if (isa<math::IPowIOp>(op)) {
    std::string call = helper("integerPower") +
                       (widthOf(type) == 64 ? "<long long>(" : "<int>(");
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, call + v[0] + ", " + v[1] + ")");
    });
  }
  if (isa<math::FPowIOp>(op)) {
    std::string call =
        helper("floatPower") + (type.isF64() ? "<double>(" : "<float>(");
    return each([&](ArrayRef<std::string> v) {
      return narrow(type, call + v[0] + ", " + v[1] + ")");
    });
  }
  return false;
}

} // namespace mgpu::kernels::cuda
