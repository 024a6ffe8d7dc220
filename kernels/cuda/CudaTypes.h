// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_CUDATYPES_H
#define MGPU_KERNELS_CUDA_CUDATYPES_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"

#include <string>

namespace mgpu::kernels::cuda {

/// The C++ type of a scalar or vector; empty where there is none. `index` is
/// long long here: single values may be narrower (FunctionEmitter::typeOf).
std::string cType(mlir::Type type);
/// The unsigned type of an integer's or index's width.
std::string unsignedType(mlir::Type type);
/// 1, 8, 16, 32 or 64; index is 64.
unsigned widthOf(mlir::Type type);

/// Whether the type's arithmetic is computed in float, or in int, and must be
/// brought back to it.
inline bool isSmall(mlir::Type type) { return widthOf(type) < 32; }

/// Literals that have exactly the value given.
std::string integerLiteral(const llvm::APInt &value);
std::string floatLiteral(const llvm::APFloat &value, mlir::Type type);
/// The literal of an IntegerAttr or FloatAttr; empty for others.
std::string literal(mlir::Attribute value);

/// Puts a text in brackets where a sign may stand before it: "-1" is "(-1)".
inline std::string inParentheses(const std::string &expression) {
  return expression.starts_with('-') ? "(" + expression + ")" : expression;
}

/// A C string literal with its quotes.
std::string quoted(llvm::StringRef text);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_CUDATYPES_H
