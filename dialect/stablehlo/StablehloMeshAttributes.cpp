// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How meshes, and groups of devices along their axes, are written.
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mgpu::stablehlo;

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
