// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sdy/SdyDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mgpu::sdy;

#include "dialect/sdy/SdyDialect.cpp.inc"

namespace {
/// Every operation means the same wherever it stands.
struct SdyInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void SdyDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/sdy/SdyOps.cpp.inc"
      >();
  addInterfaces<SdyInlinerInterface>();
}

Operation *SdyDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                           Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

template <typename Attr>
static ParseResult parseOwn(OpAsmParser &parser, Attr &attr) {
  attr = dyn_cast_or_null<Attr>(Attr::parse(parser, {}));
  return failure(!attr);
}

static ParseResult parseAxisLists(OpAsmParser &parser, AxisListsAttr &axes) {
  return parseOwn(parser, axes);
}
static void printAxisLists(OpAsmPrinter &printer, Operation *,
                           AxisListsAttr axes) {
  axes.print(printer);
}
static ParseResult parseAxisList(OpAsmParser &parser, AxisListAttr &axes) {
  return parseOwn(parser, axes);
}
static void printAxisList(OpAsmPrinter &printer, Operation *,
                          AxisListAttr axes) {
  axes.print(printer);
}
static ParseResult parseAllToAllParams(OpAsmParser &parser,
                                       AllToAllParamsAttr &params) {
  return parseOwn(parser, params);
}
static void printAllToAllParams(OpAsmPrinter &printer, Operation *,
                                AllToAllParamsAttr params) {
  params.print(printer);
}

/// `sum`, `max` and so on, or nothing.
static ParseResult parseReduction(OpAsmParser &parser, StringAttr &kind) {
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word)))
    kind = parser.getBuilder().getStringAttr(word);
  return success();
}
static void printReduction(OpAsmPrinter &printer, Operation *,
                           StringAttr kind) {
  if (kind)
    printer << kind.getValue();
}

#define GET_OP_CLASSES
#include "dialect/sdy/SdyOps.cpp.inc"

/// `NAME=[<..>, <..>]`, or nothing where it may be left out.
static ParseResult parseNamedShardings(OpAsmParser &parser,
                                       OperationState &result, StringRef name,
                                       bool mayMiss) {
  if (failed(parser.parseOptionalKeyword(name)))
    return mayMiss ? ParseResult(success())
                   : parser.emitError(parser.getCurrentLocation())
                         << "expected '" << name << "'";
  SmallVector<TensorShardingAttr> shardings;
  if (parser.parseEqual() || mgpu::sdy::parseShardings(parser, shardings))
    return failure();
  result.addAttribute(
      name, TensorShardingPerValueAttr::get(parser.getContext(), shardings));
  return success();
}

static void printShardings(OpAsmPrinter &printer, StringRef name,
                           TensorShardingPerValueAttr shardings) {
  if (!shardings)
    return;
  printer << ' ' << name << "=[";
  llvm::interleaveComma(
      shardings.getShardings(), printer,
      [&](TensorShardingAttr sharding) { sharding.print(printer); });
  printer << ']';
}

/// `(%x: T) {..} attributes : (T) -> T`, and operands resolved.
static ParseResult
parseBody(OpAsmParser &parser, OperationState &result, llvm::SMLoc at,
          ArrayRef<OpAsmParser::UnresolvedOperand> operands) {
  SmallVector<OpAsmParser::Argument> arguments;
  FunctionType type;
  if (parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(*result.addRegion(), arguments) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), at, result.operands))
    return failure();
  result.addTypes(type.getResults());
  return success();
}

static void printBody(OpAsmPrinter &printer, Operation *op,
                      ArrayRef<StringRef> elided) {
  Region &body = op->getRegion(0);
  printer << " (";
  llvm::interleaveComma(
      body.getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " : ";
  printer.printFunctionalType(op);
}

ParseResult ManualComputationOp::parse(OpAsmParser &parser,
                                       OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  ManualAxesAttr axes;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, AsmParser::Delimiter::Paren) ||
      parseNamedShardings(parser, result, "in_shardings", false) ||
      parseNamedShardings(parser, result, "out_shardings", false) ||
      parser.parseKeyword("manual_axes") || parser.parseEqual() ||
      parseOwn(parser, axes))
    return failure();
  result.addAttribute("manual_axes", axes);
  return parseBody(parser, result, at, operands);
}

void ManualComputationOp::print(OpAsmPrinter &printer) {
  printer << '(';
  llvm::interleaveComma(getTensors(), printer);
  printer << ')';
  printShardings(printer, "in_shardings", getInShardings());
  printShardings(printer, "out_shardings", getOutShardings());
  printer << " manual_axes=";
  getManualAxes().print(printer);
  printBody(printer, *this, {"in_shardings", "out_shardings", "manual_axes"});
}

ParseResult NamedComputationOp::parse(OpAsmParser &parser,
                                      OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  StringAttr name;
  if (parser.parseLess() ||
      parser.parseAttribute(name, "name", result.attributes) ||
      parser.parseGreater())
    return failure();
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, AsmParser::Delimiter::Paren) ||
      parseNamedShardings(parser, result, "in_shardings", true) ||
      parseNamedShardings(parser, result, "out_shardings", true))
    return failure();
  return parseBody(parser, result, at, operands);
}

void NamedComputationOp::print(OpAsmPrinter &printer) {
  printer << '<' << getNameAttr() << ">(";
  llvm::interleaveComma(getOperands(), printer);
  printer << ')';
  printShardings(printer, "in_shardings", getInShardingsAttr());
  printShardings(printer, "out_shardings", getOutShardingsAttr());
  printBody(printer, *this, {"in_shardings", "out_shardings", "name"});
}
