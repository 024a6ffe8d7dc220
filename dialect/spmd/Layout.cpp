// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#spmd.layout`: its text, and which part of a tensor a device holds.
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace mgpu::spmd;

#define GET_ATTRDEF_CLASSES
#include "dialect/spmd/SpmdAttributes.cpp.inc"

void SpmdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/spmd/SpmdAttributes.cpp.inc"
      >();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> mesh;
  SmallVector<DenseI64ArrayAttr> split;
  std::optional<int64_t> first;
  auto parseList = [&](SmallVectorImpl<int64_t> &list) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(list.emplace_back());
    });
  };
  auto parseAxes = [&]() -> ParseResult {
    SmallVector<int64_t> axes;
    if (parseList(axes))
      return failure();
    split.push_back(parser.getBuilder().getDenseI64ArrayAttr(axes));
    return success();
  };
  if (parser.parseLess() || parser.parseKeyword("mesh") ||
      parser.parseEqual() || parseList(mesh) || parser.parseComma())
    return {};
  if (succeeded(parser.parseOptionalKeyword("first")) &&
      (parser.parseEqual() || parser.parseInteger(first.emplace()) ||
       parser.parseComma()))
    return {};
  if (parser.parseKeyword("split") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxes) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(parser.getContext(), mesh, split, first);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<mesh = [";
  llvm::interleaveComma(getMesh(), printer);
  printer << "], ";
  if (getFirst())
    printer << "first = " << *getFirst() << ", ";
  printer << "split = [";
  llvm::interleaveComma(getSplit(), printer, [&](DenseI64ArrayAttr axes) {
    printer << '[';
    llvm::interleaveComma(axes.asArrayRef(), printer);
    printer << ']';
  });
  printer << "]>";
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> mesh,
                                 ArrayRef<DenseI64ArrayAttr> split,
                                 std::optional<int64_t> first) {
  int64_t devices = 1;
  for (int64_t size : mesh) {
    if (size < 1 || size > mostDevices / devices)
      return emitError() << "sizes of the mesh must be at least 1, and their "
                            "product at most "
                         << mostDevices << " [layout_c1]";
    devices *= size;
  }
  if (first && (*first < 0 || *first > mostDevices - devices))
    return emitError() << "'first' must be the number of a device, and the "
                          "last one of the mesh below "
                       << mostDevices << " [layout_c1]";
  llvm::SmallDenseSet<int64_t> seen;
  for (DenseI64ArrayAttr axes : split)
    for (int64_t axis : axes.asArrayRef()) {
      if (axis < 0 || axis >= int64_t(mesh.size()))
        return emitError() << "the mesh has no axis " << axis << " [layout_c2]";
      if (!seen.insert(axis).second)
        return emitError() << "axis " << axis << " is named twice [layout_c3]";
    }
  return success();
}

int64_t LayoutAttr::numDevices() const {
  return std::accumulate(getMesh().begin(), getMesh().end(), int64_t(1),
                         std::multiplies<>());
}

int64_t LayoutAttr::parts(unsigned dim) const {
  int64_t parts = 1;
  for (int64_t axis : getSplit()[dim].asArrayRef())
    parts *= getMesh()[axis];
  return parts;
}

int64_t LayoutAttr::partOf(unsigned dim, int64_t device) const {
  SmallVector<int64_t> place(getMesh().size()); // row-major
  device -= firstDevice();
  for (size_t axis = place.size(); axis-- > 0; device /= getMesh()[axis])
    place[axis] = device % getMesh()[axis];
  int64_t part = 0;
  for (int64_t axis : getSplit()[dim].asArrayRef())
    part = part * getMesh()[axis] + place[axis];
  return part;
}

SmallVector<int64_t> LayoutAttr::shardShape(ArrayRef<int64_t> full) const {
  SmallVector<int64_t> shape(full);
  for (unsigned dim = 0; dim < full.size(); ++dim)
    shape[dim] = full[dim] % parts(dim) == 0 ? full[dim] / parts(dim)
                                             : ShapedType::kDynamic;
  return shape;
}

SmallVector<int64_t> LayoutAttr::shardShape(ArrayRef<int64_t> full,
                                            int64_t device) const {
  SmallVector<int64_t> shape(full);
  for (unsigned dim = 0; dim < full.size(); ++dim)
    shape[dim] = full[dim] / parts(dim) +
                 (partOf(dim, device) < full[dim] % parts(dim) ? 1 : 0);
  return shape;
}

SmallVector<int64_t> LayoutAttr::shardOffsets(ArrayRef<int64_t> full,
                                              int64_t device) const {
  SmallVector<int64_t> offsets(full.size());
  for (unsigned dim = 0; dim < full.size(); ++dim)
    offsets[dim] = full[dim] / parts(dim) * partOf(dim, device) +
                   std::min(partOf(dim, device), full[dim] % parts(dim));
  return offsets;
}
