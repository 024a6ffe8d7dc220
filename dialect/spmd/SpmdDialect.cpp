// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu::spmd;

#include "dialect/spmd/SpmdDialect.cpp.inc"

namespace {
/// Every operation means the same wherever it stands.
struct SpmdInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void SpmdDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/spmd/SpmdOps.cpp.inc"
      >();
  addInterfaces<SpmdInlinerInterface>();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// `[[0, 1], [2, 3]]`.
static ParseResult parseGroups(OpAsmParser &parser, ArrayAttr &groups) {
  SmallVector<Attribute> lists;
  auto parseGroup = [&] {
    SmallVector<int64_t> devices;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(devices.emplace_back());
        }))
      return failure();
    lists.push_back(parser.getBuilder().getDenseI64ArrayAttr(devices));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseGroup))
    return failure();
  groups = parser.getBuilder().getArrayAttr(lists);
  return success();
}

static void printGroups(OpAsmPrinter &printer, Operation *, ArrayAttr groups) {
  printer << '[';
  llvm::interleaveComma(groups, printer, [&](Attribute group) {
    printer << '[';
    llvm::interleaveComma(cast<DenseI64ArrayAttr>(group).asArrayRef(), printer);
    printer << ']';
  });
  printer << ']';
}

static ParseResult parseReduction(OpAsmParser &parser,
                                  mgpu::ir::ReductionKindAttr &kind) {
  StringRef name;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<mgpu::ir::ReductionKind> found =
      mgpu::ir::symbolizeReductionKind(name);
  if (!found)
    return parser.emitError(at, "expected sum, prod, min or max");
  kind = mgpu::ir::ReductionKindAttr::get(parser.getContext(), *found);
  return success();
}

static void printReduction(OpAsmPrinter &printer, Operation *,
                           mgpu::ir::ReductionKindAttr kind) {
  printer << mgpu::ir::stringifyReductionKind(kind.getValue());
}

#define GET_OP_CLASSES
#include "dialect/spmd/SpmdOps.cpp.inc"

void OnOp::build(OpBuilder &b, OperationState &state, TypeRange types,
                 int64_t first, int64_t end,
                 function_ref<ValueRange(OpBuilder &)> body) {
  build(b, state, types, first, end);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(state.regions.front().get());
  YieldOp::create(b, state.location, body(b));
}

YieldOp OnOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

//===----------------------------------------------------------------------===//
// Parts that operations share
//===----------------------------------------------------------------------===//

namespace mgpu::spmd {

DeviceGroups groupsOf(ArrayAttr groups, ArrayRef<int64_t> devices) {
  if (!groups)
    return {llvm::to_vector(devices)};
  return llvm::map_to_vector(groups, [](Attribute group) {
    return llvm::to_vector(cast<DenseI64ArrayAttr>(group).asArrayRef());
  });
}

bool keepsInit(Operation *op, OpOperand &init) {
  auto call = dyn_cast<CustomCallOp>(op);
  return call && call.keeps(init.getOperandNumber() - call.getInputs().size());
}

void addEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    if (!op.isDpsInit(&operand) || keepsInit(op, operand))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

LayoutAttr layoutOf(FunctionOpInterface function, BlockArgument argument) {
  return function.getArgAttrOfType<LayoutAttr>(argument.getArgNumber(),
                                               layoutName);
}

LayoutAttr layoutOfResult(FunctionOpInterface function, unsigned index) {
  return function.getResultAttrOfType<LayoutAttr>(index, layoutName);
}

LayoutAttr replicated(MLIRContext *context, int64_t devices, unsigned rank) {
  return LayoutAttr::get(context, {devices},
                         SmallVector<DenseI64ArrayAttr>(
                             rank, DenseI64ArrayAttr::get(context, {})));
}

} // namespace mgpu::spmd
