// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/stablehlo/StablehloSyntax.h"

#include "mlir/IR/Builders.h"

namespace mgpu::stablehlo {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The types of a function type whose operands and results are `types`.
static ParseResult spread(OpAsmParser &parser, llvm::SMLoc at,
                          FunctionType function,
                          MutableArrayRef<Type *> types) {
  if (function.getNumInputs() + 1 != types.size() ||
      function.getNumResults() != 1)
    return parser.emitError(at) << "expected " << types.size() - 1
                                << " operand types and one result type";
  for (auto [type, input] : llvm::zip(types.drop_back(), function.getInputs()))
    *type = input;
  *types.back() = function.getResult(0);
  return success();
}

static void printFunctionType(OpAsmPrinter &printer, TypeRange operands,
                              TypeRange results) {
  printer.printFunctionalType(operands, results);
}

ParseResult parseSameTypes(OpAsmParser &parser, MutableArrayRef<Type *> types) {
  llvm::SMLoc at = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  if (auto function = dyn_cast<FunctionType>(type))
    return spread(parser, at, function, types);
  for (Type *each : types)
    *each = type;
  return success();
}

void printSameTypes(OpAsmPrinter &printer, ArrayRef<Type> types) {
  if (llvm::all_equal(types))
    return printer.printType(types.back());
  printFunctionType(printer, types.drop_back(), types.back());
}

ParseResult parseOneOrTwoTypes(OpAsmParser &parser, Type &lhs, Type &rhs) {
  if (parser.parseType(lhs))
    return failure();
  rhs = lhs;
  return failure(succeeded(parser.parseOptionalComma()) &&
                 failed(parser.parseType(rhs)));
}

void printOneOrTwoTypes(OpAsmPrinter &printer, Operation *, Type lhs,
                        Type rhs) {
  printer << lhs << ", " << rhs;
}

/// The tensor of the parts of `type`, a tensor of complex numbers; else null.
static Type partsOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto element =
      tensor ? dyn_cast<ComplexType>(tensor.getElementType()) : nullptr;
  return element ? tensor.clone(element.getElementType()) : Type();
}

ParseResult parseComplexType(OpAsmParser &parser, Type &lhs, Type &rhs,
                             Type &result) {
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseType(result))
    return failure();
  if (auto function = dyn_cast<FunctionType>(result)) {
    Type *types[] = {&lhs, &rhs, &result};
    return spread(parser, at, function, types);
  }
  lhs = rhs = partsOf(result);
  if (!lhs)
    return parser.emitError(at, "expected a tensor of complex numbers");
  return success();
}

void printComplexType(OpAsmPrinter &printer, Operation *, Type lhs, Type rhs,
                      Type result) {
  if (lhs == rhs && partsOf(result) == lhs)
    return printer.printType(result);
  printFunctionType(printer, {lhs, rhs}, result);
}

ParseResult parseSelectType(OpAsmParser &parser, Type &pred, Type &onTrue,
                            Type &onFalse, Type &result) {
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseType(pred))
    return failure();
  if (auto function = dyn_cast<FunctionType>(pred)) {
    Type *types[] = {&pred, &onTrue, &onFalse, &result};
    return spread(parser, at, function, types);
  }
  if (parser.parseComma() || parser.parseType(onTrue))
    return failure();
  onFalse = result = onTrue;
  return success();
}

void printSelectType(OpAsmPrinter &printer, Operation *, Type pred, Type onTrue,
                     Type onFalse, Type result) {
  if (onTrue != onFalse || onTrue != result)
    return printFunctionType(printer, {pred, onTrue, onFalse}, result);
  printer << pred << ", " << onTrue;
}

ParseResult parsePairType(OpAsmParser &parser, SmallVectorImpl<Type> &operands,
                          SmallVectorImpl<Type> &results) {
  SmallVector<Type> types;
  if (parser.parseTypeList(types))
    return failure();
  auto function =
      types.size() == 1 ? dyn_cast<FunctionType>(types[0]) : FunctionType();
  ArrayRef<Type> inputs = function ? function.getInputs() : ArrayRef(types);
  ArrayRef<Type> outputs = function ? function.getResults() : ArrayRef(types);
  operands.assign(inputs.begin(), inputs.end());
  results.assign(outputs.begin(), outputs.end());
  return success();
}

void printPairType(OpAsmPrinter &printer, Operation *, TypeRange operands,
                   TypeRange results) {
  if (!llvm::equal(operands, results))
    return printFunctionType(printer, operands, results);
  llvm::interleaveComma(operands, printer);
}

ParseResult parseTupleType(OpAsmParser &parser, SmallVectorImpl<Type> &operands,
                           Type &result) {
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseType(result))
    return failure();
  auto tuple = dyn_cast<TupleType>(result);
  if (!tuple)
    return parser.emitError(at, "expected a tuple");
  operands.assign(tuple.getTypes().begin(), tuple.getTypes().end());
  return success();
}

void printTupleType(OpAsmPrinter &printer, Operation *, TypeRange,
                    Type result) {
  printer << result;
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

ParseResult parseDims(AsmParser &parser, Dims &dims) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(dims.emplace_back());
  });
}

void printDims(AsmPrinter &printer, ArrayRef<int64_t> dims) {
  printer << '[';
  llvm::interleaveComma(dims, printer);
  printer << ']';
}

ParseResult
parseOperandsThen(OpAsmParser &parser,
                  SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  for (OpAsmParser::UnresolvedOperand operand;;) {
    OptionalParseResult found = parser.parseOptionalOperand(operand);
    if (!found.has_value())
      return success();
    if (failed(*found) || parser.parseComma())
      return failure();
    operands.push_back(operand);
  }
}

void printOperandsThen(OpAsmPrinter &printer, Operation *,
                       OperandRange operands) {
  for (Value operand : operands)
    printer << operand << ", ";
}

ParseResult parseRanges(OpAsmParser &parser, DenseI64ArrayAttr &starts,
                        DenseI64ArrayAttr &limits, DenseI64ArrayAttr &strides) {
  Dims from, to, by;
  auto parseRange = [&]() -> ParseResult {
    if (parser.parseInteger(from.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(to.emplace_back()))
      return failure();
    by.push_back(1);
    if (succeeded(parser.parseOptionalColon()))
      return parser.parseInteger(by.back());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRange))
    return failure();
  starts = parser.getBuilder().getDenseI64ArrayAttr(from);
  limits = parser.getBuilder().getDenseI64ArrayAttr(to);
  strides = parser.getBuilder().getDenseI64ArrayAttr(by);
  return success();
}

void printRanges(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr starts,
                 DenseI64ArrayAttr limits, DenseI64ArrayAttr strides) {
  printer << '[';
  llvm::interleaveComma(
      llvm::zip(starts.asArrayRef(), limits.asArrayRef(), strides.asArrayRef()),
      printer, [&](auto range) {
        auto [from, to, by] = range;
        printer << from << ':' << to;
        if (by != 1)
          printer << ':' << by;
      });
  printer << ']';
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

ParseResult parseFormat(OpAsmParser &parser, IntegerAttr &exponent,
                        IntegerAttr &mantissa) {
  llvm::SMLoc at = parser.getCurrentLocation();
  StringRef text;
  if (parser.parseKeyword(&text))
    return failure();
  int32_t bits[2];
  auto [left, right] = text.split('m');
  if (!left.consume_front("e") || left.getAsInteger(10, bits[0]) ||
      right.getAsInteger(10, bits[1]))
    return parser.emitError(at, "expected a format like e5m10");
  exponent = parser.getBuilder().getI32IntegerAttr(bits[0]);
  mantissa = parser.getBuilder().getI32IntegerAttr(bits[1]);
  return success();
}

void printFormat(OpAsmPrinter &printer, Operation *, IntegerAttr exponent,
                 IntegerAttr mantissa) {
  printer << 'e' << exponent.getInt() << 'm' << mantissa.getInt();
}

ParseResult parseTarget(OpAsmParser &parser, StringAttr &target) {
  return parser.parseSymbolName(target);
}

void printTarget(OpAsmPrinter &printer, Operation *, StringAttr target) {
  printer.printSymbolName(target.getValue());
}

} // namespace mgpu::stablehlo
