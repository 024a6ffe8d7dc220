// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_SCALARS_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_SCALARS_H

// Computes elementwise operations on one element of each operand, in operations
// of arith and math.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace mgpu::conversion {

/// `type` as it is in memory: integers have no sign, and 8 bits where they are
/// narrow; tensors of them as well.
mlir::Type signless(mlir::Type type);
/// Unsigned integers and booleans.
bool isUnsigned(mlir::Type elementType);
/// Integers of 2 and 4 bits.
bool isNarrow(mlir::Type elementType);
/// A number of the type as one of its type in memory.
llvm::APInt inMemory(const llvm::APInt &number, mlir::Type elementType);
/// The number of the type whose bits are the lowest of `number`.
mlir::Value wrapped(mlir::ImplicitLocOpBuilder &b, mlir::Value number,
                    mlir::Type elementType);

/// One element of an operation of the source.
struct Scalar {
  mlir::ImplicitLocOpBuilder &b;
  mlir::Operation *op;
  llvm::ArrayRef<mlir::Value> in; ///< integers without a sign

  /// The element type of an operand of the source, with its sign.
  mlir::Type from(unsigned k = 0) const {
    return mlir::getElementTypeOrSelf(op->getOperand(k).getType());
  }
  mlir::Type to() const {
    return mlir::getElementTypeOrSelf(op->getResult(0).getType());
  }
  mlir::Type type() const { return in[0].getType(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type()); }
  bool isBool() const { return type().isInteger(1); }
  unsigned width() const { return type().getIntOrFloatBitWidth(); }

  /// A number of the first operand's type, or of `type`.
  mlir::Value constant(mlir::Type type, double value) const;
  mlir::Value constant(double value) const { return constant(type(), value); }
  mlir::Value bits(const llvm::APInt &value) const;
};

/// An operation of one operand, applied to the element.
template <typename Op>
mlir::Value unary(const Scalar &s) {
  return Op::create(s.b, s.in[0]);
}

using ScalarBuilder = mlir::Value (*)(const Scalar &);
/// By the name of the operation; null for one that is not elementwise.
ScalarBuilder findScalarBuilder(mlir::OperationName name);
/// Applies `build`, and keeps within the result's type.
mlir::Value applied(ScalarBuilder build, const Scalar &scalar);

// The tables that findScalarBuilder() looks into.
struct NamedScalar {
  llvm::StringLiteral name; ///< with the dialect's
  ScalarBuilder build;
};
llvm::ArrayRef<NamedScalar> arithmeticScalars();
llvm::ArrayRef<NamedScalar> functionScalars();
llvm::ArrayRef<NamedScalar> conversionScalars();
llvm::ArrayRef<NamedScalar> chloScalars();

/// The bits of a float as a signed integer that orders all floats: -NaN, -inf,
/// ..., -0, +0, ..., +inf, NaN.
mlir::Value totalOrder(mlir::ImplicitLocOpBuilder &b, mlir::Value value);
/// `value` as a value of the float type `to`, rounded once where it is
/// narrower.
mlir::Value castFloat(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                      mlir::Type to);
/// `value` as `to`, as stablehlo.convert does; `from` and `to` have signs.
mlir::Value convertNumber(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                          mlir::Type from, mlir::Type to);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_SCALARS_H
