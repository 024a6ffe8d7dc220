// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mpmd/MpmdSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mgpu::mpmd;
namespace sdy = mgpu::sdy;

#include "dialect/mpmd/MpmdDialect.cpp.inc"

namespace {
/// Every operation means the same wherever it stands. An inlined operation
/// keeps the number of its call.
struct MpmdInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *call, Operation *, bool) const final {
    return isa<CallOp>(call);
  }
  void processInlinedCallBlocks(
      Operation *call,
      iterator_range<Region::iterator> inlinedBlocks) const final {
    Attribute counter = call->getAttr(callCounterName);
    if (!counter)
      return;
    for (Block &block : inlinedBlocks)
      block.walk([&](Operation *op) {
        if (isa<FragmentOp, FragmentCallOp, NamedComputationOp>(op))
          op->setAttr(callCounterName, counter);
      });
  }
};
} // namespace

void MpmdDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/mpmd/MpmdOps.cpp.inc"
      >();
  addInterfaces<MpmdInlinerInterface>();
}

namespace mgpu::mpmd {

bool isToken(Type type) {
  return type.getAbstractType().getName() == "stablehlo.token";
}

bool isTensorOrToken(Type type) {
  return isa<RankedTensorType>(type) || isToken(type);
}

TopologyAttr topologyOf(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    function = op->getParentOfType<func::FuncOp>();
  return function ? function->getAttrOfType<TopologyAttr>(topologyName)
                  : TopologyAttr();
}

WorkAttr workAt(Location location) {
  WorkAttr found;
  location->walk([&](Location inner) {
    if (auto fused = dyn_cast<FusedLoc>(inner))
      found = dyn_cast_or_null<WorkAttr>(fused.getMetadata());
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

sdy::MeshAttr meshAt(Operation *op, StringRef name) {
  TopologyAttr topology = topologyOf(op);
  return topology ? topology.find(name) : sdy::MeshAttr();
}

} // namespace mgpu::mpmd

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

namespace mgpu::mpmd {
static void printUserOrigins(OpAsmPrinter &printer, Operation *,
                             ArrayAttr origins) {
  printUserOrigins(printer, origins);
}
} // namespace mgpu::mpmd

#define GET_OP_CLASSES
#include "dialect/mpmd/MpmdOps.cpp.inc"

/// `(%a) {..} (%x: T) {..} : (T) -> T`; the types of a loop are one list.
static ParseResult parseBody(OpAsmParser &parser, OperationState &result,
                             bool isLoop) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<OpAsmParser::Argument> arguments;
  llvm::SMLoc at = parser.getCurrentLocation();
  Region *body = result.addRegion();
  if (parser.parseOperandList(operands, AsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(*body, arguments))
    return failure();
  OpBuilder b(parser.getContext());
  FragmentOp::ensureTerminator(*body, b, result.location);
  SmallVector<Type> types;
  if (isLoop) {
    if (parser.parseOptionalColonTypeList(types))
      return failure();
    result.addTypes(types);
  } else {
    FunctionType type;
    if (parser.parseColonType(type))
      return failure();
    llvm::append_range(types, type.getInputs());
    result.addTypes(type.getResults());
  }
  return parser.resolveOperands(operands, types, at, result.operands);
}

static void printBody(OpAsmPrinter &printer, Operation *op,
                      ArrayRef<StringRef> elided, bool isLoop) {
  Region &body = op->getRegion(0);
  printer << " (" << op->getOperands() << ')';
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " (";
  llvm::interleaveComma(
      body.getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
  if (isLoop) {
    if (op->getNumOperands() > 0)
      printer << " : " << op->getOperandTypes();
    return;
  }
  printer << " : ";
  printer.printFunctionalType(op);
}

ParseResult NamedComputationOp::parse(OpAsmParser &parser,
                                      OperationState &result) {
  auto origin =
      dyn_cast_or_null<UserOriginAttr>(UserOriginAttr::parse(parser, {}));
  if (!origin)
    return failure();
  result.addAttribute("origin", origin);
  return parseBody(parser, result, /*isLoop=*/false);
}

void NamedComputationOp::print(OpAsmPrinter &printer) {
  getOrigin().print(printer);
  printBody(printer, *this, {"origin"}, /*isLoop=*/false);
}

ParseResult ForOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseBody(parser, result, /*isLoop=*/true);
}

void ForOp::print(OpAsmPrinter &printer) {
  printBody(printer, *this, {}, /*isLoop=*/true);
}

/// `[<@mesh, [..]>]` as attribute `name`.
static ParseResult parseShardingsAs(OpAsmParser &parser, StringRef name,
                                    OperationState &result) {
  SmallVector<sdy::TensorShardingAttr> shardings;
  if (parser.parseEqual() || sdy::parseShardings(parser, shardings))
    return failure();
  result.addAttribute(name, sdy::TensorShardingPerValueAttr::get(
                                parser.getContext(), shardings));
  return success();
}

/// `stage=1`, `in_shardings=[..]` and `out_shardings=[..]`, those that are
/// there.
static ParseResult parseMore(OpAsmParser &parser, OperationState &result) {
  bool more = succeeded(parser.parseOptionalComma());
  if (more && succeeded(parser.parseOptionalKeyword("stage"))) {
    int64_t stage = 0;
    if (parser.parseEqual() || parser.parseInteger(stage))
      return failure();
    result.addAttribute("stage_id",
                        parser.getBuilder().getI64IntegerAttr(stage));
    more = succeeded(parser.parseOptionalComma());
  }
  if (more && succeeded(parser.parseOptionalKeyword("in_shardings"))) {
    if (parseShardingsAs(parser, "in_shardings", result))
      return failure();
    more = succeeded(parser.parseOptionalComma());
  }
  if (more && (parser.parseKeyword("out_shardings") ||
               parseShardingsAs(parser, "out_shardings", result)))
    return failure();
  return success();
}

ParseResult FragmentOp::parse(OpAsmParser &parser, OperationState &result) {
  std::string mesh;
  ArrayAttr origins;
  if (parser.parseLess() || parser.parseKeyword("mesh") ||
      parser.parseEqual() || parser.parseString(&mesh) || parser.parseComma() ||
      parser.parseKeyword("origin") || parser.parseEqual() ||
      parseUserOrigins(parser, origins) || parseMore(parser, result) ||
      parser.parseGreater())
    return failure();
  result.addAttribute("mesh_name", parser.getBuilder().getStringAttr(mesh));
  result.addAttribute("origin", origins);
  return parseBody(parser, result, /*isLoop=*/false);
}

void FragmentOp::print(OpAsmPrinter &printer) {
  printer << "<mesh=" << getMeshNameAttr() << ", origin=";
  printUserOrigins(printer, getOrigin());
  if (std::optional<uint64_t> stage = getStageId())
    printer << ", stage=" << int64_t(*stage);
  std::pair<StringRef, std::optional<sdy::TensorShardingPerValueAttr>> lists[] =
      {{"in_shardings", getInShardings()},
       {"out_shardings", getOutShardings()}};
  for (auto [name, shardings] : lists)
    if (shardings) {
      printer << ", " << name << "=[";
      llvm::interleaveComma(
          shardings->getShardings(), printer,
          [&](sdy::TensorShardingAttr each) { each.print(printer); });
      printer << ']';
    }
  printer << '>';
  printBody(
      printer, *this,
      {"mesh_name", "origin", "stage_id", "in_shardings", "out_shardings"},
      /*isLoop=*/false);
}

//===----------------------------------------------------------------------===//
// Builders and interfaces
//===----------------------------------------------------------------------===//

void AssignOp::build(OpBuilder &b, OperationState &state, Value tensor,
                     StringRef meshName, StringRef origin) {
  build(b, state,
        MeshTensorType::get(b.getContext(), meshName,
                            cast<RankedTensorType>(tensor.getType())),
        tensor, origin.empty() ? StringAttr() : b.getStringAttr(origin));
}

void UnassignOp::build(OpBuilder &b, OperationState &state, Value tensor,
                       StringRef origin) {
  build(b, state, cast<MeshTensorType>(tensor.getType()).getRankedTensorType(),
        tensor, origin.empty() ? StringAttr() : b.getStringAttr(origin));
}

SmallVector<Region *> ForOp::getLoopRegions() { return {&getRegion()}; }

void ForOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn set) {
  if (!region.empty() && region.getNumArguments() > 0)
    set(region.getArguments().back(), "index");
}
