// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How meshes, origins and tensors on meshes are written.
#include "dialect/mpmd/MpmdSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu::mpmd;
namespace sdy = mgpu::sdy;

#include "dialect/mpmd/MpmdEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/mpmd/MpmdAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/mpmd/MpmdTypes.cpp.inc"

void MpmdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/mpmd/MpmdAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/mpmd/MpmdTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

Attribute NamedMeshAttr::parse(AsmParser &parser, Type) {
  std::string name;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseColon())
    return {};
  auto mesh = dyn_cast_or_null<sdy::MeshAttr>(sdy::MeshAttr::parse(parser, {}));
  if (!mesh || parser.parseGreater())
    return {};
  return get(parser.getContext(), name, mesh);
}

void NamedMeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getName());
  printer << " : ";
  getMesh().print(printer);
  printer << '>';
}

/// Items of `Item`'s own syntax between `<` and `>`.
template <typename Item>
static ParseResult parseItems(AsmParser &parser, SmallVector<Item> &items) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
    auto item = dyn_cast_or_null<Item>(Item::parse(parser, {}));
    items.push_back(item);
    return failure(!item);
  });
}

template <typename Item>
static void printItems(AsmPrinter &printer, ArrayRef<Item> items) {
  printer << '<';
  llvm::interleaveComma(items, printer,
                        [&](Item item) { item.print(printer); });
  printer << '>';
}

Attribute TopologyAttr::parse(AsmParser &parser, Type) {
  SmallVector<NamedMeshAttr> meshes;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parseItems(parser, meshes))
    return {};
  return getChecked([&] { return parser.emitError(at); }, parser.getContext(),
                    meshes);
}

void TopologyAttr::print(AsmPrinter &printer) const {
  printItems(printer, getMeshes());
}

sdy::MeshAttr TopologyAttr::find(StringRef name) const {
  for (NamedMeshAttr mesh : getMeshes())
    if (mesh.getName() == name)
      return mesh.getMesh();
  return {};
}

//===----------------------------------------------------------------------===//
// Origins: those that stand in lists have no brackets of their own there
//===----------------------------------------------------------------------===//

namespace mgpu::mpmd {

/// `"f"(1)`.
static UserOriginAttr parseUserOriginText(AsmParser &parser) {
  std::string name;
  int64_t count = 0;
  if (parser.parseString(&name))
    return {};
  if (succeeded(parser.parseOptionalLParen()) &&
      (parser.parseInteger(count) || parser.parseRParen()))
    return {};
  return UserOriginAttr::get(parser.getContext(), name, count);
}

static void printUserOriginText(AsmPrinter &printer, UserOriginAttr origin) {
  printer << origin.getUserName();
  if (origin.getTransposeCount())
    printer << '(' << origin.getTransposeCount() << ')';
}

ParseResult parseUserOrigins(AsmParser &parser, ArrayAttr &origins) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        list.push_back(parseUserOriginText(parser));
        return failure(!list.back());
      }))
    return failure();
  origins = parser.getBuilder().getArrayAttr(list);
  return success();
}

void printUserOrigins(AsmPrinter &printer, ArrayAttr origins) {
  printer << '[';
  llvm::interleaveComma(origins, printer, [&](Attribute each) {
    printUserOriginText(printer, cast<UserOriginAttr>(each));
  });
  printer << ']';
}

/// `"m1"["f1", "f2"]`, or `"m1"`.
static MeshWithOriginsAttr parseMeshText(AsmParser &parser) {
  std::string mesh;
  SmallVector<OriginAttr> origins;
  auto parseOne = [&]() -> ParseResult {
    std::string label;
    if (parser.parseString(&label))
      return failure();
    origins.push_back(OriginAttr::get(parser.getContext(), label));
    return success();
  };
  if (parser.parseString(&mesh) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalSquare,
                                     parseOne))
    return {};
  return MeshWithOriginsAttr::get(parser.getContext(), mesh, origins);
}

static void printMeshText(AsmPrinter &printer, MeshWithOriginsAttr mesh) {
  printer.printString(mesh.getMeshName());
  if (mesh.getOrigins().empty())
    return;
  printer << '[';
  llvm::interleaveComma(mesh.getOrigins(), printer, [&](OriginAttr origin) {
    printer.printString(origin.getOriginLabel());
  });
  printer << ']';
}

} // namespace mgpu::mpmd

Attribute UserOriginAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  UserOriginAttr origin = parseUserOriginText(parser);
  if (!origin || parser.parseGreater())
    return {};
  return origin;
}

void UserOriginAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printUserOriginText(printer, *this);
  printer << '>';
}

Attribute OriginAttr::parse(AsmParser &parser, Type) {
  std::string label;
  if (parser.parseLess() || parser.parseString(&label) || parser.parseGreater())
    return {};
  return get(parser.getContext(), label);
}

void OriginAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getOriginLabel());
  printer << '>';
}

Attribute MeshWithOriginsAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  MeshWithOriginsAttr mesh = parseMeshText(parser);
  if (!mesh || parser.parseGreater())
    return {};
  return mesh;
}

void MeshWithOriginsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printMeshText(printer, *this);
  printer << '>';
}

Attribute MeshesWithOriginsAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshWithOriginsAttr> meshes;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        meshes.push_back(parseMeshText(parser));
        return failure(!meshes.back());
      }))
    return {};
  return get(parser.getContext(), meshes);
}

void MeshesWithOriginsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getValue(), printer, [&](MeshWithOriginsAttr mesh) {
    printMeshText(printer, mesh);
  });
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Tensors on a mesh
//===----------------------------------------------------------------------===//

Type MeshTensorType::parse(AsmParser &parser) {
  std::string mesh, memory;
  RankedTensorType tensor;
  sdy::TensorShardingAttr sharding;
  StringAttr kind;
  if (parser.parseLess() || parser.parseString(&mesh) || parser.parseComma() ||
      parser.parseType(tensor))
    return {};
  bool more = succeeded(parser.parseOptionalComma());
  if (more && succeeded(parser.parseOptionalKeyword("sharding"))) {
    if (parser.parseEqual())
      return {};
    sharding = dyn_cast_or_null<sdy::TensorShardingAttr>(
        sdy::TensorShardingAttr::parse(parser, {}));
    if (!sharding)
      return {};
    more = succeeded(parser.parseOptionalComma());
  }
  if (more) {
    if (parser.parseKeyword("memory_kind") || parser.parseEqual() ||
        parser.parseString(&memory))
      return {};
    kind = parser.getBuilder().getStringAttr(memory);
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), mesh, tensor, sharding, kind);
}

void MeshTensorType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getMeshName());
  printer << ", " << getRankedTensorType();
  if (getSharding()) {
    printer << ", sharding=";
    getSharding().print(printer);
  }
  if (getMemoryKind())
    printer << ", memory_kind=" << getMemoryKind();
  printer << '>';
}

RankedTensorType MeshTensorType::getLocalTensorType(sdy::MeshAttr mesh) const {
  RankedTensorType global = getRankedTensorType();
  if (!getSharding() || getSharding().getDims().empty())
    return global;
  if (!sdy::faultOf(getSharding(), global, mesh).empty())
    return {};
  auto axes = llvm::map_to_vector(
      mesh.getAxes(), [](sdy::MeshAxisAttr axis) { return axis.getName(); });
  std::optional<SmallVector<int64_t>> shape =
      sdy::shardShape(global.getShape(), getSharding(), mesh, axes);
  return shape ? global.clone(*shape) : RankedTensorType();
}

bool MeshTensorType::isFullyReplicated() const {
  auto isWhole = [](sdy::DimensionShardingAttr dim) {
    return dim.getAxes().empty();
  };
  return !getSharding() || (getSharding().getUnreduced().empty() &&
                            llvm::all_of(getSharding().getDims(), isWhole));
}

bool MeshTensorType::isOnHost() const {
  return getMemoryKind() && getMemoryKind() == hostMemory;
}

ShapedType MeshTensorType::cloneWith(std::optional<ArrayRef<int64_t>> shape,
                                     Type elementType) const {
  return get(getContext(), getMeshName(),
             RankedTensorType::get(shape.value_or(getShape()), elementType,
                                   getRankedTensorType().getEncoding()),
             getSharding(), getMemoryKind());
}

Type MeshTensorType::getElementType() const {
  return getRankedTensorType().getElementType();
}

ArrayRef<int64_t> MeshTensorType::getShape() const {
  return getRankedTensorType().getShape();
}
