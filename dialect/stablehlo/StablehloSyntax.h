// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLOSYNTAX_H
#define MGPU_DIALECT_STABLEHLO_STABLEHLOSYNTAX_H

// Parsers and printers of `custom<NAME>` in the operations' syntax.

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/OpImplementation.h"

#include <variant>

namespace mgpu::stablehlo {

using Dims = llvm::SmallVector<int64_t>;

/// `[0, 1]`.
mlir::ParseResult parseDims(mlir::AsmParser &parser, Dims &dims);
void printDims(mlir::AsmPrinter &printer, llvm::ArrayRef<int64_t> dims);

/// A field of an attribute: a list or a number, in any order, empty or 0 where
/// it is not written.
struct Field {
  llvm::StringRef name;
  std::variant<Dims *, int64_t *> value;
};
/// The parts to print; one that is empty or 0 is not printed, unless it must
/// be.
struct Printed {
  llvm::StringRef name;
  std::variant<llvm::ArrayRef<int64_t>, int64_t> value;
  bool always = false;
};
/// `<a = [0], b = 1>`.
mlir::ParseResult parseFields(mlir::AsmParser &parser,
                              llvm::ArrayRef<Field> fields);
void printFields(mlir::AsmPrinter &printer, llvm::ArrayRef<Printed> fields);

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
mlir::ParseResult parseConvDimensions(mlir::AsmParser &parser,
                                      ConvDimensionNumbersAttr &dims);
void printConvDimensions(mlir::AsmPrinter &printer,
                         ConvDimensionNumbersAttr dims);
inline void printConvDimensions(mlir::OpAsmPrinter &printer, mlir::Operation *,
                                ConvDimensionNumbersAttr dims) {
  printConvDimensions(printer, dims);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// One type for all of `types`, or a function type; the last is the result's.
mlir::ParseResult parseSameTypes(mlir::OpAsmParser &parser,
                                 llvm::MutableArrayRef<mlir::Type *> types);
void printSameTypes(mlir::OpAsmPrinter &printer,
                    llvm::ArrayRef<mlir::Type> types);

template <typename... Types>
mlir::ParseResult parseSameType(mlir::OpAsmParser &parser, Types &...types) {
  mlir::Type *all[] = {&types...};
  return parseSameTypes(parser, all);
}
template <typename... Types>
void printSameType(mlir::OpAsmPrinter &printer, mlir::Operation *,
                   Types... types) {
  mlir::Type all[] = {types...};
  printSameTypes(printer, all);
}

/// `tensor<2xf32>, tensor<2xf32>`, or one type for both.
mlir::ParseResult parseOneOrTwoTypes(mlir::OpAsmParser &parser, mlir::Type &lhs,
                                     mlir::Type &rhs);
void printOneOrTwoTypes(mlir::OpAsmPrinter &printer, mlir::Operation *,
                        mlir::Type lhs, mlir::Type rhs);

/// `tensor<2xcomplex<f32>>`, or a function type.
mlir::ParseResult parseComplexType(mlir::OpAsmParser &parser, mlir::Type &lhs,
                                   mlir::Type &rhs, mlir::Type &result);
void printComplexType(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      mlir::Type lhs, mlir::Type rhs, mlir::Type result);

/// `tensor<2xi1>, tensor<2xf32>`, or a function type.
mlir::ParseResult parseSelectType(mlir::OpAsmParser &parser, mlir::Type &pred,
                                  mlir::Type &onTrue, mlir::Type &onFalse,
                                  mlir::Type &result);
void printSelectType(mlir::OpAsmPrinter &printer, mlir::Operation *,
                     mlir::Type pred, mlir::Type onTrue, mlir::Type onFalse,
                     mlir::Type result);

/// `tensor<f32>, tensor<i32>`, or a function type.
mlir::ParseResult parsePairType(mlir::OpAsmParser &parser,
                                llvm::SmallVectorImpl<mlir::Type> &operands,
                                llvm::SmallVectorImpl<mlir::Type> &results);
void printPairType(mlir::OpAsmPrinter &printer, mlir::Operation *,
                   mlir::TypeRange operands, mlir::TypeRange results);

/// `tuple<tensor<f32>, tensor<i32>>`.
mlir::ParseResult parseTupleType(mlir::OpAsmParser &parser,
                                 llvm::SmallVectorImpl<mlir::Type> &operands,
                                 mlir::Type &result);
void printTupleType(mlir::OpAsmPrinter &printer, mlir::Operation *,
                    mlir::TypeRange operands, mlir::Type result);

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

template <typename Enum, typename EnumAttr>
mlir::ParseResult parseEnum(mlir::OpAsmParser &parser, EnumAttr &attr,
                            std::optional<Enum> (*symbolize)(llvm::StringRef)) {
  llvm::SMLoc at = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return mlir::failure();
  std::optional<Enum> value = symbolize(name);
  if (!value)
    return parser.emitError(at) << "'" << name << "' is not known here";
  attr = EnumAttr::get(parser.getContext(), *value);
  return mlir::success();
}

#define MGPU_STABLEHLO_ENUM(DIRECTIVE, NAME)                                   \
  inline mlir::ParseResult parse##DIRECTIVE(mlir::OpAsmParser &parser,         \
                                            NAME##Attr &attr) {                \
    return parseEnum<NAME>(parser, attr, symbolize##NAME);                     \
  }                                                                            \
  inline void print##DIRECTIVE(mlir::OpAsmPrinter &printer, mlir::Operation *, \
                               NAME##Attr attr) {                              \
    printer << stringify##NAME(attr.getValue());                               \
  }
MGPU_STABLEHLO_ENUM(Direction, ComparisonDirection)
MGPU_STABLEHLO_ENUM(CompareType, ComparisonType)
MGPU_STABLEHLO_ENUM(FftKind, FftType)
MGPU_STABLEHLO_ENUM(Distribution, RngDistribution)
MGPU_STABLEHLO_ENUM(Algorithm, RngAlgorithm)
#undef MGPU_STABLEHLO_ENUM

/// `e5m10`.
mlir::ParseResult parseFormat(mlir::OpAsmParser &parser,
                              mlir::IntegerAttr &exponent,
                              mlir::IntegerAttr &mantissa);
void printFormat(mlir::OpAsmPrinter &printer, mlir::Operation *,
                 mlir::IntegerAttr exponent, mlir::IntegerAttr mantissa);

/// Operands with a comma behind each.
mlir::ParseResult parseOperandsThen(
    mlir::OpAsmParser &parser,
    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &operands);
void printOperandsThen(mlir::OpAsmPrinter &printer, mlir::Operation *,
                       mlir::OperandRange operands);

/// `[0:4, 1:8:2]`.
mlir::ParseResult parseRanges(mlir::OpAsmParser &parser,
                              mlir::DenseI64ArrayAttr &starts,
                              mlir::DenseI64ArrayAttr &limits,
                              mlir::DenseI64ArrayAttr &strides);
void printRanges(mlir::OpAsmPrinter &printer, mlir::Operation *,
                 mlir::DenseI64ArrayAttr starts, mlir::DenseI64ArrayAttr limits,
                 mlir::DenseI64ArrayAttr strides);

/// `, precision = [DEFAULT, HIGH]`, or nothing.
mlir::ParseResult parsePrecision(mlir::OpAsmParser &parser,
                                 mlir::ArrayAttr &precision);
void printPrecision(mlir::OpAsmPrinter &printer, mlir::Operation *,
                    mlir::ArrayAttr precision);

/// `, precision = [...], algorithm = <...>`, or either, or nothing.
mlir::ParseResult parsePrecisionAndAlgorithm(mlir::OpAsmParser &parser,
                                             mlir::ArrayAttr &precision,
                                             DotAlgorithmAttr &algorithm);
void printPrecisionAndAlgorithm(mlir::OpAsmPrinter &printer, mlir::Operation *,
                                mlir::ArrayAttr precision,
                                DotAlgorithmAttr algorithm);

/// `, batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
mlir::ParseResult parseDotDimensions(mlir::OpAsmParser &parser,
                                     DotDimensionNumbersAttr &dims);
void printDotDimensions(mlir::OpAsmPrinter &printer, mlir::Operation *,
                        DotDimensionNumbersAttr dims);

/// `stride = [2, 2], pad = [[0, 1], [0, 1]]`, and so on.
mlir::ParseResult parseWindow(mlir::OpAsmParser &parser,
                              mlir::DenseI64ArrayAttr &strides,
                              mlir::DenseIntElementsAttr &padding,
                              mlir::DenseI64ArrayAttr &lhsDilation,
                              mlir::DenseI64ArrayAttr &rhsDilation,
                              mlir::DenseBoolArrayAttr &reversal);
void printWindow(mlir::OpAsmPrinter &printer, mlir::Operation *,
                 mlir::DenseI64ArrayAttr strides,
                 mlir::DenseIntElementsAttr padding,
                 mlir::DenseI64ArrayAttr lhsDilation,
                 mlir::DenseI64ArrayAttr rhsDilation,
                 mlir::DenseBoolArrayAttr reversal);

/// `@name`.
mlir::ParseResult parseTarget(mlir::OpAsmParser &parser,
                              mlir::StringAttr &target);
void printTarget(mlir::OpAsmPrinter &printer, mlir::Operation *,
                 mlir::StringAttr target);

} // namespace mgpu::stablehlo

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLOSYNTAX_H
