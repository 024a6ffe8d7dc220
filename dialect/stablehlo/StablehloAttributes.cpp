// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the attributes are written.
#include "dialect/stablehlo/StablehloDialect.h"
#include "dialect/stablehlo/StablehloSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu::stablehlo;

#include "dialect/stablehlo/StablehloEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/stablehlo/StablehloAttributes.cpp.inc"

void StablehloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/stablehlo/StablehloAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Fields by name
//===----------------------------------------------------------------------===//

ParseResult mgpu::stablehlo::parseFields(AsmParser &parser,
                                         ArrayRef<Field> fields) {
  llvm::SmallDenseSet<StringRef> seen;
  if (parser.parseLess())
    return failure();
  if (succeeded(parser.parseOptionalGreater()))
    return success();
  do {
    llvm::SMLoc at = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    const auto *field = llvm::find_if(
        fields, [&](const Field &each) { return each.name == name; });
    if (field == fields.end())
      return parser.emitError(at) << "'" << name << "' is not a field of this";
    if (!seen.insert(field->name).second)
      return parser.emitError(at) << "'" << name << "' is written twice";
    bool isList = std::holds_alternative<Dims *>(field->value);
    if (isList ? parseDims(parser, *std::get<Dims *>(field->value))
               : parser.parseInteger(*std::get<int64_t *>(field->value)))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  return parser.parseGreater();
}

void mgpu::stablehlo::printFields(AsmPrinter &printer,
                                  ArrayRef<Printed> fields) {
  StringRef separator = "";
  printer << '<';
  for (const Printed &field : fields) {
    const auto *list = std::get_if<ArrayRef<int64_t>>(&field.value);
    if (!field.always &&
        (list ? list->empty() : std::get<int64_t>(field.value) == 0))
      continue;
    printer << separator << field.name << " = ";
    separator = ", ";
    if (list)
      printDims(printer, *list);
    else
      printer << std::get<int64_t>(field.value);
  }
  printer << '>';
}

Attribute DotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  Dims lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  if (parseFields(parser, {{"lhs_batching_dimensions", &lhsBatching},
                           {"rhs_batching_dimensions", &rhsBatching},
                           {"lhs_contracting_dimensions", &lhsContracting},
                           {"rhs_contracting_dimensions", &rhsContracting}}))
    return {};
  return get(parser.getContext(), lhsBatching, rhsBatching, lhsContracting,
             rhsContracting);
}

void DotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"lhs_batching_dimensions", getLhsBatchingDimensions()},
               {"rhs_batching_dimensions", getRhsBatchingDimensions()},
               {"lhs_contracting_dimensions", getLhsContractingDimensions()},
               {"rhs_contracting_dimensions", getRhsContractingDimensions()}});
}

Attribute GatherDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  Dims offset, collapsed, operandBatching, indicesBatching, map;
  int64_t vectorDim = 0;
  if (parseFields(parser, {{"offset_dims", &offset},
                           {"collapsed_slice_dims", &collapsed},
                           {"operand_batching_dims", &operandBatching},
                           {"start_indices_batching_dims", &indicesBatching},
                           {"start_index_map", &map},
                           {"index_vector_dim", &vectorDim}}))
    return {};
  return get(parser.getContext(), offset, collapsed, operandBatching,
             indicesBatching, map, vectorDim);
}

void GatherDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"offset_dims", getOffsetDims()},
               {"collapsed_slice_dims", getCollapsedSliceDims()},
               {"operand_batching_dims", getOperandBatchingDims()},
               {"start_indices_batching_dims", getStartIndicesBatchingDims()},
               {"start_index_map", getStartIndexMap()},
               {"index_vector_dim", getIndexVectorDim()}});
}

Attribute ScatterDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  Dims window, inserted, inputBatching, indicesBatching, map;
  int64_t vectorDim = 0;
  if (parseFields(parser, {{"update_window_dims", &window},
                           {"inserted_window_dims", &inserted},
                           {"input_batching_dims", &inputBatching},
                           {"scatter_indices_batching_dims", &indicesBatching},
                           {"scatter_dims_to_operand_dims", &map},
                           {"index_vector_dim", &vectorDim}}))
    return {};
  return get(parser.getContext(), window, inserted, inputBatching,
             indicesBatching, map, vectorDim);
}

void ScatterDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(
      printer,
      {{"update_window_dims", getUpdateWindowDims()},
       {"inserted_window_dims", getInsertedWindowDims()},
       {"input_batching_dims", getInputBatchingDims()},
       {"scatter_indices_batching_dims", getScatterIndicesBatchingDims()},
       {"scatter_dims_to_operand_dims", getScatterDimsToOperandDims()},
       {"index_vector_dim", getIndexVectorDim()}});
}

Attribute OutputOperandAliasAttr::parse(AsmParser &parser, Type) {
  Dims output, operand;
  int64_t index = 0;
  if (parseFields(parser, {{"output_tuple_indices", &output},
                           {"operand_index", &index},
                           {"operand_tuple_indices", &operand}}))
    return {};
  return get(parser.getContext(), output, index, operand);
}

void OutputOperandAliasAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"output_tuple_indices", getOutputTupleIndices(), true},
               {"operand_index", getOperandIndex(), true},
               {"operand_tuple_indices", getOperandTupleIndices(), true}});
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  ConvDimensionNumbersAttr dims;
  if (parser.parseLess() || parseConvDimensions(parser, dims) ||
      parser.parseGreater())
    return {};
  return dims;
}

void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printConvDimensions(printer, *this);
  printer << '>';
}

FailureOr<DotAlgorithmAttr> DotAlgorithmAttr::parseFields(AsmParser &parser) {
  Type types[3];
  int64_t counts[3];
  StringRef typeNames[] = {"lhs_precision_type", "rhs_precision_type",
                           "accumulation_type"};
  StringRef countNames[] = {"lhs_component_count", "rhs_component_count",
                            "num_primitive_operations"};
  if (parser.parseLess())
    return failure();
  for (auto [name, type] : llvm::zip(typeNames, types))
    if (parser.parseKeyword(name) || parser.parseEqual() ||
        parser.parseType(type) || parser.parseComma())
      return failure();
  for (auto [name, count] : llvm::zip(countNames, counts))
    if (parser.parseKeyword(name) || parser.parseEqual() ||
        parser.parseInteger(count) || parser.parseComma())
      return failure();
  if (parser.parseKeyword("allow_imprecise_accumulation") ||
      parser.parseEqual())
    return failure();
  bool allow = succeeded(parser.parseOptionalKeyword("true"));
  if ((!allow && parser.parseKeyword("false")) || parser.parseGreater())
    return failure();
  return get(parser.getContext(), types[0], types[1], types[2], counts[0],
             counts[1], counts[2], allow);
}

void DotAlgorithmAttr::printFields(AsmPrinter &printer) const {
  printer << "<lhs_precision_type = " << getLhsPrecisionType()
          << ", rhs_precision_type = " << getRhsPrecisionType()
          << ", accumulation_type = " << getAccumulationType()
          << ", lhs_component_count = " << getLhsComponentCount()
          << ", rhs_component_count = " << getRhsComponentCount()
          << ", num_primitive_operations = " << getNumPrimitiveOperations()
          << ", allow_imprecise_accumulation = "
          << (getAllowImpreciseAccumulation() ? "true" : "false") << '>';
}

Attribute DotAlgorithmAttr::parse(AsmParser &parser, Type) {
  FailureOr<DotAlgorithmAttr> parsed = parseFields(parser);
  return failed(parsed) ? DotAlgorithmAttr() : *parsed;
}

void DotAlgorithmAttr::print(AsmPrinter &printer) const {
  printFields(printer);
}

static Attribute parseBounds(AsmParser &parser,
                             AsmParser::Delimiter delimiter) {
  Dims bounds;
  auto parseBound = [&]() -> ParseResult {
    bounds.push_back(ShapedType::kDynamic);
    if (succeeded(parser.parseOptionalQuestion()))
      return success();
    return parser.parseInteger(bounds.back());
  };
  if (parser.parseCommaSeparatedList(delimiter, parseBound))
    return {};
  return TypeExtensionsAttr::get(parser.getContext(), bounds);
}

Attribute StablehloDialect::parseAttribute(DialectAsmParser &parser,
                                           Type type) const {
  StringRef name;
  Attribute attribute;
  if (generatedAttributeParser(parser, &name, type, attribute).has_value())
    return attribute;
  // The longer spelling of #stablehlo.bounds<16, ?>.
  if (name == "type_extensions") {
    if (parser.parseLess() || parser.parseKeyword("bounds") ||
        parser.parseEqual())
      return {};
    attribute = parseBounds(parser, AsmParser::Delimiter::Square);
    return attribute && succeeded(parser.parseGreater()) ? attribute
                                                         : Attribute();
  }
  parser.emitError(parser.getNameLoc(), "unknown attribute `")
      << name << "` in dialect `stablehlo`";
  return {};
}

void StablehloDialect::printAttribute(Attribute attribute,
                                      DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attribute, printer);
}

Attribute TypeExtensionsAttr::parse(AsmParser &parser, Type) {
  return parseBounds(parser, AsmParser::Delimiter::LessGreater);
}

void TypeExtensionsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getBounds(), printer, [&](int64_t bound) {
    if (ShapedType::isDynamic(bound))
      printer << '?';
    else
      printer << bound;
  });
  printer << '>';
}

Attribute ResultAccuracyAttr::parse(AsmParser &parser, Type) {
  FloatAttr atol, rtol;
  int64_t ulps = 0;
  ResultAccuracyModeAttr mode;
  auto parseFloat = [&](StringRef name, FloatAttr &value) -> ParseResult {
    double number = 0;
    if (failed(parser.parseOptionalKeyword(name)))
      return success();
    if (parser.parseEqual() || parser.parseFloat(number) || parser.parseComma())
      return failure();
    value = parser.getBuilder().getF64FloatAttr(number);
    return success();
  };
  if (parser.parseLess() || parseFloat("atol", atol) ||
      parseFloat("rtol", rtol))
    return {};
  if (succeeded(parser.parseOptionalKeyword("ulps")) &&
      (parser.parseEqual() || parser.parseInteger(ulps) || parser.parseComma()))
    return {};
  if (parser.parseKeyword("mode") || parser.parseEqual() ||
      parser.parseAttribute(mode) || parser.parseGreater())
    return {};
  return get(parser.getContext(), atol, rtol, ulps, mode);
}

void ResultAccuracyAttr::print(AsmPrinter &printer) const {
  auto printFloat = [&](StringRef name, FloatAttr value) {
    if (!value)
      return;
    printer << name << " = ";
    printer.printFloat(value.getValue());
    printer << ", ";
  };
  printer << '<';
  printFloat("atol", getAtol());
  printFloat("rtol", getRtol());
  if (getUlps())
    printer << "ulps = " << getUlps() << ", ";
  printer << "mode = " << getMode() << '>';
}

// How meshes, and groups of devices along their axes, are written.

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  int64_t preSize = 1, size = 0;
  if (parser.parseLess() || parser.parseKeyword("name") ||
      parser.parseEqual() || parser.parseAttribute(name))
    return {};
  // A part of the axis: `sub_axis_info = (2)4`, maybe with its attribute's
  // name.
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("sub_axis_info") || parser.parseEqual())
      return {};
    bool isNested = succeeded(parser.parseOptionalLess());
    if (parser.parseLParen() || parser.parseInteger(preSize) ||
        parser.parseRParen() || parser.parseInteger(size) ||
        (isNested && parser.parseGreater()))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), name, preSize, size);
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << "<name = " << getName();
  if (getSize())
    printer << ", sub_axis_info = (" << getPreSize() << ')' << getSize();
  printer << '>';
}

/// Items of an attribute, each with or without the attribute's name before it.
template <typename Item>
static ParseResult parseItems(AsmParser &parser, SmallVector<Item> &items) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    Attribute item;
    OptionalParseResult full = parser.parseOptionalAttribute(item);
    if (!full.has_value())
      item = Item::parse(parser, {});
    else if (failed(*full))
      return failure();
    auto typed = dyn_cast_or_null<Item>(item);
    if (!typed)
      return failure();
    items.push_back(typed);
    return success();
  });
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshAxisAttr> axes;
  DenseIntElementsAttr deviceIds;
  if (parser.parseLess() || parser.parseKeyword("axes") ||
      parser.parseEqual() || parseItems(parser, axes))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("device_ids") || parser.parseEqual() ||
       parser.parseAttribute(deviceIds)))
    return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), axes, deviceIds);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<axes = [";
  llvm::interleaveComma(getAxes(), printer, [&](MeshAxisAttr axis) {
    printer.printStrippedAttrOrType(axis);
  });
  printer << ']';
  if (getDeviceIds())
    printer << ", device_ids = " << getDeviceIds();
  printer << '>';
}

Attribute ReplicaGroupMeshAxesAttr::parse(AsmParser &parser, Type) {
  Attribute mesh;
  SmallVector<AxisRefAttr> axes;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword("mesh") ||
      parser.parseEqual() || parser.parseAttribute(mesh) ||
      parser.parseComma() || parser.parseKeyword("axes") ||
      parser.parseEqual() || parseItems(parser, axes) || parser.parseGreater())
    return {};
  if (!isa<FlatSymbolRefAttr, MeshAttr>(mesh)) {
    parser.emitError(at, "expected the name of a mesh, or a #stablehlo.mesh");
    return {};
  }
  return get(parser.getContext(), mesh, axes);
}

void ReplicaGroupMeshAxesAttr::print(AsmPrinter &printer) const {
  printer << "<mesh = " << getMesh() << ", axes = [";
  llvm::interleaveComma(getAxes(), printer,
                        [&](AxisRefAttr axis) { printer << axis; });
  printer << "]>";
}
