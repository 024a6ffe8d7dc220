// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How constants, loops and reductions are written.
#include "dialect/stablehlo/StablehloSyntax.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mgpu::stablehlo;

using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;

//===----------------------------------------------------------------------===//
// stablehlo.constant dense<1.0> : tensor<f32>
// stablehlo.constant() <{value = dense<1> : tensor<i8>}> : () -> tensor<!q..>
//===----------------------------------------------------------------------===//

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &result) {
  if (succeeded(parser.parseOptionalLParen())) {
    FunctionType type;
    if (parser.parseRParen())
      return failure();
    bool isProperty = succeeded(parser.parseOptionalLess());
    if (parser.parseOptionalAttrDict(result.attributes) ||
        (isProperty && (parser.parseGreater() ||
                        parser.parseOptionalAttrDict(result.attributes))))
      return failure();
    llvm::SMLoc at = parser.getCurrentLocation();
    if (parser.parseColonType(type))
      return failure();
    if (type.getNumResults() != 1)
      return parser.emitError(at, "expected one result type");
    result.addTypes(type.getResults());
    return success();
  }
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  ElementsAttr value;
  if (parser.parseAttribute(value, "value", result.attributes))
    return failure();
  result.addTypes(value.getType());
  return success();
}

void ConstantOp::print(OpAsmPrinter &printer) {
  if (getValue().getType() != getType()) {
    printer << "() <{value = " << getValueAttr() << "}>";
    printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
    printer << " : () -> " << getType();
    return;
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << ' ' << getValueAttr();
}

//===----------------------------------------------------------------------===//
// stablehlo.while(%iterArg = %x, %iterArg_0 = %y) : TYPES
//     attributes {..} cond {..} do {..}
//===----------------------------------------------------------------------===//

ParseResult WhileOp::parse(OpAsmParser &parser, OperationState &result) {
  Operands operands;
  SmallVector<OpAsmParser::Argument> arguments;
  llvm::SMLoc at = parser.getCurrentLocation();
  auto parseOne = [&] {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  if (!operands.empty() && parser.parseColonTypeList(result.types))
    return failure();
  if (parser.resolveOperands(operands, result.types, at, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (auto [argument, type] : llvm::zip(arguments, result.types))
    argument.type = type;
  Region *cond = result.addRegion(), *body = result.addRegion();
  return failure(
      parser.parseKeyword("cond") || parser.parseRegion(*cond, arguments) ||
      parser.parseKeyword("do") || parser.parseRegion(*body, arguments));
}

void WhileOp::print(OpAsmPrinter &printer) {
  printer.shadowRegionArgs(getCond(), getBody().getArguments());
  printer << '(';
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getOperand()),
                        printer, [&](auto pair) {
                          printer << std::get<0>(pair) << " = "
                                  << std::get<1>(pair);
                        });
  printer << ')';
  if (getNumOperands()) {
    printer << " : ";
    llvm::interleaveComma(getOperandTypes(), printer);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer.printNewline();
  printer << "cond ";
  printer.printRegion(getCond(), /*printEntryBlockArgs=*/false);
  printer << " do ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
// stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = [1] : ..
//     reducer(%a: T, %b: T) (%c: U, %d: U) {..}
//===----------------------------------------------------------------------===//

/// The operation that a reduction of one tensor applies, where its name says
/// all; else null.
static Operation *appliedOp(ReduceOp op) {
  Block &block = op.getBody().front();
  if (op.getInputs().size() != 1 || block.getNumArguments() != 2 ||
      !llvm::hasNItems(block, 2))
    return nullptr;
  Operation *inner = &block.front();
  auto element = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
  auto scalar =
      element ? RankedTensorType::get({}, element.getElementType()) : nullptr;
  auto same = [&](Type type) { return type == scalar; };
  auto end = dyn_cast<ReturnOp>(block.back());
  bool isPlain = end &&
                 isa_and_nonnull<StablehloDialect>(inner->getDialect()) &&
                 inner->hasTrait<OpTrait::IsCommutative>() &&
                 inner->getAttrs().empty() && end->getAttrs().empty() &&
                 llvm::equal(inner->getOperands(), block.getArguments()) &&
                 llvm::equal(end.getResults(), inner->getResults()) &&
                 llvm::all_of(block.getArgumentTypes(), same) &&
                 llvm::all_of(inner->getResultTypes(), same);
  return isPlain ? inner : nullptr;
}

void ReduceOp::print(OpAsmPrinter &printer) {
  llvm::interleaveComma(llvm::zip(getInputs(), getInitValues()), printer,
                        [&](auto pair) {
                          printer << '(' << std::get<0>(pair)
                                  << " init: " << std::get<1>(pair) << ')';
                        });
  Operation *applied = appliedOp(*this);
  if (applied)
    printer << " applies " << applied->getName();
  printer << " across dimensions = ";
  printDims(printer, getDimensions());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"dimensions"});
  printer << " : ";
  printer.printFunctionalType(*this);
  if (applied)
    return;
  printer.printNewline();
  printer << " reducer";
  unsigned count = getInputs().size();
  Block &block = getBody().front();
  for (unsigned index = 0; index < count; ++index) {
    printer << '(';
    printer.printRegionArgument(block.getArgument(index));
    printer << ", ";
    printer.printRegionArgument(block.getArgument(index + count));
    printer << ") ";
  }
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// `(%x init: %c), (%y init: %d)`.
static ParseResult parseInputs(OpAsmParser &parser, Operands &inputs,
                               Operands &inits) {
  do {
    if (parser.parseLParen() || parser.parseOperand(inputs.emplace_back()) ||
        parser.parseKeyword("init") || parser.parseColon() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseRParen())
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  inputs.append(inits);
  return success();
}

/// The body of a reduction that applies the operation `name`.
static ParseResult buildApplied(OpAsmParser &parser, llvm::SMLoc at,
                                OperationName name, OperationState &result,
                                Type input) {
  auto tensor = dyn_cast<ShapedType>(input);
  if (!name.isRegistered() || !name.hasTrait<OpTrait::IsCommutative>() ||
      !name.hasTrait<OpTrait::OneResult>() ||
      name.getDialectNamespace() != StablehloDialect::getDialectNamespace())
    return parser.emitError(at, "expected a commutative stablehlo operation");
  if (!tensor)
    return parser.emitError(at, "expected a tensor to reduce");
  Type scalar = RankedTensorType::get({}, tensor.getElementType());
  OpBuilder builder(parser.getContext());
  Block *block = builder.createBlock(result.addRegion());
  Location loc = parser.getEncodedSourceLoc(at);
  block->addArguments({scalar, scalar}, {loc, loc});
  OperationState state(loc, name);
  state.addOperands(block->getArguments());
  state.addTypes(scalar);
  Operation *inner = builder.create(state);
  ReturnOp::create(builder, loc, inner->getResults());
  return success();
}

/// `reducer(%a: T, %b: T) (%c: U, %d: U) {..}`.
static ParseResult parseReducer(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> lhs, rhs;
  if (parser.parseKeyword("reducer"))
    return failure();
  while (succeeded(parser.parseOptionalLParen()))
    if (parser.parseArgument(lhs.emplace_back(), /*allowType=*/true) ||
        parser.parseComma() ||
        parser.parseArgument(rhs.emplace_back(), /*allowType=*/true) ||
        parser.parseRParen())
      return failure();
  lhs.append(rhs);
  return parser.parseRegion(*result.addRegion(), lhs);
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  Operands operands, inits;
  llvm::SMLoc at = parser.getCurrentLocation(), nameAt;
  if (parseInputs(parser, operands, inits))
    return failure();
  bool applies = succeeded(parser.parseOptionalKeyword("applies"));
  FailureOr<OperationName> name = failure();
  if (applies) {
    nameAt = parser.getCurrentLocation();
    name = parser.parseCustomOperationName();
    if (failed(name))
      return failure();
  }
  SmallVector<int64_t> dims;
  FunctionType type;
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual() || parseDims(parser, dims) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), at, result.operands))
    return failure();
  result.addAttribute("dimensions",
                      parser.getBuilder().getDenseI64ArrayAttr(dims));
  result.addTypes(type.getResults());
  return applies ? buildApplied(parser, nameAt, *name, result, type.getInput(0))
                 : parseReducer(parser, result);
}
