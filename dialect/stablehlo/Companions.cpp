// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/stablehlo/Companions.h"
#include "dialect/stablehlo/StablehloRules.h"
#include "dialect/stablehlo/StablehloSyntax.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu;
using mgpu::stablehlo::checkResult;
using mgpu::stablehlo::parseOneOrTwoTypes;
using mgpu::stablehlo::printOneOrTwoTypes;
using mgpu::stablehlo::shapeOf;

#include "dialect/stablehlo/CheckDialect.cpp.inc"
#include "dialect/stablehlo/ChloDialect.cpp.inc"
#include "dialect/stablehlo/ChloEnums.cpp.inc"
#include "dialect/stablehlo/InterpreterDialect.cpp.inc"
#include "dialect/stablehlo/MhloDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/stablehlo/ChloAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/CheckOps.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/ChloOps.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/InterpreterOps.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/MhloOps.cpp.inc"

namespace {
/// Every operation means the same wherever it stands.
struct CompanionInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void check::CheckDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/stablehlo/CheckOps.cpp.inc"
      >();
  addInterfaces<CompanionInlinerInterface>();
}

void chlo::ChloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/stablehlo/ChloAttributes.cpp.inc"
      >();
}

void chlo::ChloDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/stablehlo/ChloOps.cpp.inc"
      >();
  addInterfaces<CompanionInlinerInterface>();
}

void interpreter::InterpreterDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/stablehlo/InterpreterOps.cpp.inc"
      >();
  addInterfaces<CompanionInlinerInterface>();
}

void mhlo::MhloDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/stablehlo/MhloOps.cpp.inc"
      >();
  addInterfaces<CompanionInlinerInterface>();
  // Attributes and types of XLA's that we do not know pass.
  allowUnknownTypes();
}

void stablehlo::registerDialects(DialectRegistry &registry) {
  registry.insert<check::CheckDialect, chlo::ChloDialect,
                  interpreter::InterpreterDialect, mhlo::MhloDialect,
                  quant::QuantDialect, stablehlo::StablehloDialect>();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

Attribute chlo::RaggedDotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  stablehlo::Dims batching[2], contracting[2], ragged, group;
  if (stablehlo::parseFields(parser,
                             {{"lhs_batching_dimensions", &batching[0]},
                              {"rhs_batching_dimensions", &batching[1]},
                              {"lhs_contracting_dimensions", &contracting[0]},
                              {"rhs_contracting_dimensions", &contracting[1]},
                              {"lhs_ragged_dimensions", &ragged},
                              {"rhs_group_dimensions", &group}}))
    return {};
  return get(parser.getContext(), batching[0], batching[1], contracting[0],
             contracting[1], ragged, group);
}

void chlo::RaggedDotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  stablehlo::printFields(
      printer,
      {{"lhs_batching_dimensions", getLhsBatchingDimensions(), true},
       {"rhs_batching_dimensions", getRhsBatchingDimensions(), true},
       {"lhs_contracting_dimensions", getLhsContractingDimensions(), true},
       {"rhs_contracting_dimensions", getRhsContractingDimensions(), true},
       {"lhs_ragged_dimensions", getLhsRaggedDimensions(), true},
       {"rhs_group_dimensions", getRhsGroupDimensions(), true}});
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// The expected value has the type of the value.
static LogicalResult checkExpected(Operation *op, Type actual, Type expected) {
  if (actual == expected)
    return success();
  return op->emitOpError() << "must compare values of one type, not " << actual
                           << " and " << expected;
}

#define MGPU_EXPECTED(OP, EXPECTED)                                            \
  LogicalResult check::OP::verify() {                                          \
    return checkExpected(*this, getActual().getType(), EXPECTED.getType());    \
  }
MGPU_EXPECTED(ExpectEqOp, getExpected())
MGPU_EXPECTED(ExpectAlmostEqOp, getExpected())
MGPU_EXPECTED(ExpectCloseOp, getExpected())
#undef MGPU_EXPECTED

LogicalResult chlo::TopKOp::verify() {
  SmallVector<int64_t> shape(shapeOf(getOperand()));
  int64_t k = getK();
  if (shape.empty() || k < 0 ||
      (!ShapedType::isDynamic(shape.back()) && shape.back() < k))
    return emitOpError() << "must have rows of " << k << " elements at least";
  shape.back() = k;
  if (failed(checkResult(*this, getValues(), shape,
                         stablehlo::elementOf(getOperand()))))
    return failure();
  return checkResult(*this, getIndices(), shape,
                     IntegerType::get(getContext(), 32));
}

/// Functions over whole tensors take and give parts of them, as their shardings
/// say, which this dialect does not know.
static bool mayBePart(Type whole, Type part) {
  auto from = dyn_cast<RankedTensorType>(whole);
  auto to = dyn_cast<RankedTensorType>(part);
  return whole == part ||
         (from && to && from.getElementType() == to.getElementType() &&
          from.getRank() == to.getRank());
}

LogicalResult
interpreter::RunParallelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<Type> inputs, results;
  size_t columns = 0;
  for (Attribute row : getPrograms()) {
    auto programs = dyn_cast<ArrayAttr>(row);
    if (!programs || programs.empty() ||
        (columns && columns != programs.size()))
      return emitOpError() << "must have lists of functions of one length";
    columns = programs.size();
    for (Attribute program : programs) {
      auto name = dyn_cast<FlatSymbolRefAttr>(program);
      auto function =
          name ? symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this,
                                                                      name)
               : FunctionOpInterface();
      if (!function)
        return emitOpError()
               << "names a function that is not there: " << program;
      llvm::append_range(inputs, function.getArgumentTypes());
      llvm::append_range(results, function.getResultTypes());
    }
  }
  if (!columns)
    return emitOpError() << "must have functions to run";
  if (!llvm::equal(inputs, getOperandTypes(), mayBePart) ||
      !llvm::equal(results, getResultTypes(), mayBePart))
    return emitOpError() << "must take and give what its functions do";
  return success();
}
