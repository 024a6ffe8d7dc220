// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How meshes and shardings are written.
#include "dialect/sdy/SdyDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu::sdy;

#include "dialect/sdy/SdyEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/sdy/SdyAttributes.cpp.inc"

void SdyDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/sdy/SdyAttributes.cpp.inc"
      >();
}

/// Items of `Item`'s own syntax between `delimiter`s.
template <typename Item>
static ParseResult parseList(AsmParser &parser, AsmParser::Delimiter delimiter,
                             SmallVector<Item> &items) {
  return parser.parseCommaSeparatedList(delimiter, [&] {
    auto item = dyn_cast_or_null<Item>(Item::parse(parser, {}));
    items.push_back(item);
    return failure(!item);
  });
}

template <typename Item>
static void printList(AsmPrinter &printer, ArrayRef<Item> items, StringRef open,
                      StringRef close) {
  printer << open;
  llvm::interleaveComma(items, printer,
                        [&](Item item) { item.print(printer); });
  printer << close;
}

//===----------------------------------------------------------------------===//
// Meshes and axes
//===----------------------------------------------------------------------===//

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t size = 0;
  if (parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size))
    return {};
  return get(parser.getContext(), parser.getBuilder().getStringAttr(name),
             size);
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << getName() << '=' << getSize();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshAxisAttr> axes;
  SmallVector<int64_t> ids;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parseList(parser, AsmParser::Delimiter::Square, axes))
    return {};
  auto parseId = [&] { return parser.parseInteger(ids.emplace_back()); };
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("device_ids") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseId)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(at); }, parser.getContext(),
                    axes, ids);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printList(printer, getAxes(), "[", "]");
  if (!getDeviceIds().empty()) {
    printer << ", device_ids=[";
    llvm::interleaveComma(getDeviceIds(), printer);
    printer << ']';
  }
  printer << '>';
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t preSize = 1, size = 0;
  if (parser.parseString(&name))
    return {};
  if (succeeded(parser.parseOptionalColon())) {
    llvm::SMLoc at = parser.getCurrentLocation();
    if (parser.parseLParen() || parser.parseInteger(preSize) ||
        parser.parseRParen() || parser.parseInteger(size))
      return {};
    if (preSize < 1 || size < 2) {
      parser.emitError(at, "a part of an axis has 2 devices at least, and 1 at "
                           "least before it");
      return {};
    }
  }
  return get(parser.getContext(), parser.getBuilder().getStringAttr(name),
             preSize, size);
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << getName();
  if (isSubAxis())
    printer << ":(" << getPreSize() << ')' << getSize();
}

Attribute AxisListAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisRefAttr> axes;
  if (parseList(parser, AsmParser::Delimiter::Braces, axes))
    return {};
  return get(parser.getContext(), axes);
}

void AxisListAttr::print(AsmPrinter &printer) const {
  printList(printer, getAxes(), "{", "}");
}

Attribute AxisListsAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisListAttr> lists;
  if (parseList(parser, AsmParser::Delimiter::Square, lists))
    return {};
  return get(parser.getContext(), lists);
}

void AxisListsAttr::print(AsmPrinter &printer) const {
  printList(printer, getLists(), "[", "]");
}

Attribute AllToAllParamAttr::parse(AsmParser &parser, Type) {
  int64_t from = 0, to = 0;
  auto axes = cast_or_null<AxisListAttr>(AxisListAttr::parse(parser, {}));
  if (!axes || parser.parseColon() || parser.parseInteger(from) ||
      parser.parseArrow() || parser.parseInteger(to))
    return {};
  return get(parser.getContext(), axes, from, to);
}

void AllToAllParamAttr::print(AsmPrinter &printer) const {
  getAxes().print(printer);
  printer << ": " << getFrom() << "->" << getTo();
}

Attribute AllToAllParamsAttr::parse(AsmParser &parser, Type) {
  SmallVector<AllToAllParamAttr> params;
  if (parseList(parser, AsmParser::Delimiter::Square, params))
    return {};
  return get(parser.getContext(), params);
}

void AllToAllParamsAttr::print(AsmPrinter &printer) const {
  printList(printer, getParams(), "[", "]");
}

Attribute ManualAxesAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseAxis))
    return {};
  return get(parser.getContext(), axes);
}

void ManualAxesAttr::print(AsmPrinter &printer) const {
  printer << '{';
  llvm::interleaveComma(getAxes(), printer);
  printer << '}';
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

Attribute DimensionShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisRefAttr> axes;
  bool isClosed = true;
  int64_t priority = -1;
  llvm::SMLoc at = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    if (!isClosed)
      return parser.emitError(parser.getCurrentLocation(),
                              "nothing comes behind '?'");
    if (succeeded(parser.parseOptionalQuestion())) {
      isClosed = false;
      return success();
    }
    auto axis = cast_or_null<AxisRefAttr>(AxisRefAttr::parse(parser, {}));
    axes.push_back(axis);
    return failure(!axis);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return {};
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word)) &&
      (!word.consume_front("p") || word.getAsInteger(10, priority) ||
       priority < 0)) {
    parser.emitError(at, "expected a priority, like p1");
    return {};
  }
  return get(parser.getContext(), axes, isClosed, priority);
}

void DimensionShardingAttr::print(AsmPrinter &printer) const {
  printList(printer, getAxes(), "{", "");
  if (!getIsClosed())
    printer << (getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (getPriority() >= 0)
    printer << 'p' << getPriority();
}

Attribute TensorShardingAttr::parse(AsmParser &parser, Type) {
  Attribute mesh;
  SmallVector<DimensionShardingAttr> dims;
  SmallVector<AxisRefAttr> axes[2];
  StringAttr reduction;
  StringRef names[] = {"replicated", "unreduced"};
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("mesh"))) {
    mesh = MeshAttr::parse(parser, {});
  } else if (FlatSymbolRefAttr name; succeeded(parser.parseAttribute(name))) {
    mesh = name;
  }
  if (!mesh || parser.parseComma() ||
      parseList(parser, AsmParser::Delimiter::Square, dims))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name, word;
    if (parser.parseOptionalKeyword(&name, names)) {
      parser.emitError(parser.getCurrentLocation(),
                       "expected 'replicated' or 'unreduced'");
      return {};
    }
    if (parser.parseEqual())
      return {};
    if (name == "unreduced" && succeeded(parser.parseOptionalKeyword(&word)))
      reduction = parser.getBuilder().getStringAttr(word);
    if (parseList(parser, AsmParser::Delimiter::Braces,
                  axes[name == "unreduced"]))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), mesh, dims, axes[0], axes[1], reduction);
}

void TensorShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (auto mesh = dyn_cast<MeshAttr>(getMesh())) {
    printer << "mesh";
    mesh.print(printer);
  } else {
    printer << getMesh();
  }
  printList(printer, getDims(), ", [", "]");
  if (!getReplicated().empty())
    printList(printer, getReplicated(), ", replicated={", "}");
  if (!getUnreduced().empty()) {
    printer << ", unreduced="
            << (getReduction() ? getReduction().strref() : "");
    printList(printer, getUnreduced(), "{", "}");
  }
  printer << '>';
}

/// The attribute's name may stand before each of them.
ParseResult
mgpu::sdy::parseShardings(AsmParser &parser,
                          SmallVectorImpl<TensorShardingAttr> &shardings) {
  auto parseOne = [&] {
    Attribute attribute;
    OptionalParseResult full = parser.parseOptionalAttribute(attribute);
    if (!full.has_value())
      attribute = TensorShardingAttr::parse(parser, {});
    auto sharding = dyn_cast_or_null<TensorShardingAttr>(attribute);
    shardings.push_back(sharding);
    return failure(!sharding);
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne);
}

Attribute TensorShardingPerValueAttr::parse(AsmParser &parser, Type) {
  SmallVector<TensorShardingAttr> shardings;
  if (parser.parseLess() || parseShardings(parser, shardings) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), shardings);
}

void TensorShardingPerValueAttr::print(AsmPrinter &printer) const {
  printList(printer, getShardings(), "<[", "]>");
}
