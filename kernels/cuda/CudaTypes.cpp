// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaTypes.h"

#include "kernels/lower/SubgroupMatrix.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

std::string cType(Type type) {
  if (type.isIndex())
    return "long long";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (!integer.isSignless())
      return "";
    switch (integer.getWidth()) {
    case 1:
      return "bool";
    case 8:
      return "signed char";
    case 16:
      return "short";
    case 32:
      return "int";
    case 64:
      return "long long";
    }
    return "";
  }
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (isa<Float8E4M3FNType>(type))
    return "f8e4m3";
  if (isa<Float8E5M2Type>(type))
    return "f8e5m2";
  if (auto vector = dyn_cast<VectorType>(type)) {
    std::string element = cType(vector.getElementType());
    if (element.empty() || vector.isScalable())
      return "";
    return "vec<" + element + ", " + std::to_string(vector.getNumElements()) +
           ">";
  }
  if (auto matrix = dyn_cast<gpu::MMAMatrixType>(type))
    if (auto layout = layoutOf(matrix))
      return "vec<" + cType(storedElement(matrix)) + ", " +
             std::to_string(layout->numElements()) + ">";
  return "";
}

std::string unsignedType(Type type) {
  switch (widthOf(type)) {
  case 1:
    return "bool";
  case 8:
    return "unsigned char";
  case 16:
    return "unsigned short";
  case 32:
    return "unsigned";
  }
  return "unsigned long long";
}

std::string integerLiteral(const llvm::APInt &value) {
  if (value.getBitWidth() == 1)
    return value.isZero() ? "false" : "true";
  // The most negative number has no literal: its digits are a positive one.
  if (value.getBitWidth() >= 32 && value.isMinSignedValue()) {
    std::string most = llvm::toString(~value, 10, /*Signed=*/true);
    return value.getBitWidth() == 32 ? "(-" + most + " - 1)"
                                     : "(-" + most + "ll - 1)";
  }
  std::string text = llvm::toString(value, 10, /*Signed=*/true);
  if (!value.isSignedIntN(32))
    text += "ll";
  return text;
}

std::string floatLiteral(const llvm::APFloat &value, Type type) {
  bool isDouble = type.isF64();
  llvm::APFloat wide = value;
  bool lost = false;
  wide.convert(isDouble ? llvm::APFloat::IEEEdouble()
                        : llvm::APFloat::IEEEsingle(),
               llvm::APFloat::rmNearestTiesToEven, &lost);
  std::string text;
  if (!wide.isFinite()) {
    uint64_t bits = wide.bitcastToAPInt().getZExtValue();
    text = (isDouble ? "__longlong_as_double(0x" : "__int_as_float(0x") +
           llvm::utohexstr(bits, /*LowerCase=*/true) + ")";
  } else {
    llvm::SmallString<32> digits;
    wide.toString(digits, /*FormatPrecision=*/0, /*FormatMaxPadding=*/3);
    text = digits.str().lower();
    if (StringRef(text).find_first_of(".e") == StringRef::npos)
      text += ".0";
    if (!isDouble)
      text += "f";
  }
  if (type.isF32() || isDouble)
    return text;
  return cType(type) + "(" + text + ")";
}

std::string literal(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    std::string text = integerLiteral(integer.getValue());
    // The literal has the type of its value.
    return integer.getType().isInteger(64) && llvm::isDigit(text.back())
               ? text + "ll"
               : text;
  }
  if (auto number = dyn_cast<FloatAttr>(value))
    return floatLiteral(number.getValue(), number.getType());
  return "";
}

std::string quoted(llvm::StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (llvm::isPrint(c)) {
      result += c;
    } else { // three octal digits end by themselves
      result += '\\';
      for (int shift : {6, 3, 0})
        result += char('0' + (uint8_t(c) >> shift & 7));
    }
  }
  return result + '"';
}

} // namespace mgpu::kernels::cuda
