// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#spmd.layout`: its text, and which part of a tensor a device holds.
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
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
  SmallVector<DenseI64ArrayAttr> split, offsets, halos;
  std::optional<int64_t> first;
  auto parseList = [&](SmallVectorImpl<int64_t> &list) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(list.emplace_back());
    });
  };
  auto parseLists = [&](SmallVectorImpl<DenseI64ArrayAttr> &lists) {
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Square, [&]() -> ParseResult {
          SmallVector<int64_t> list;
          if (parseList(list))
            return failure();
          lists.push_back(parser.getBuilder().getDenseI64ArrayAttr(list));
          return success();
        });
  };
  if (parser.parseLess() || parser.parseKeyword("mesh") ||
      parser.parseEqual() || parseList(mesh) || parser.parseComma())
    return {};
  if (succeeded(parser.parseOptionalKeyword("first")) &&
      (parser.parseEqual() || parser.parseInteger(first.emplace()) ||
       parser.parseComma()))
    return {};
  if (parser.parseKeyword("split") || parser.parseEqual() || parseLists(split))
    return {};
  bool hasMore = succeeded(parser.parseOptionalComma());
  if (hasMore && succeeded(parser.parseOptionalKeyword("offsets"))) {
    if (parser.parseEqual() || parseLists(offsets))
      return {};
    hasMore = succeeded(parser.parseOptionalComma());
  }
  if (hasMore && (parser.parseKeyword("halos") || parser.parseEqual() ||
                  parseLists(halos)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(parser.getContext(), mesh, split, first,
                                       offsets, halos);
}

static void printLists(AsmPrinter &printer, ArrayRef<DenseI64ArrayAttr> lists) {
  printer << '[';
  llvm::interleaveComma(lists, printer, [&](DenseI64ArrayAttr list) {
    printer << '[';
    llvm::interleaveComma(list.asArrayRef(), printer);
    printer << ']';
  });
  printer << ']';
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<mesh = [";
  llvm::interleaveComma(getMesh(), printer);
  printer << "], ";
  if (getFirst())
    printer << "first = " << *getFirst() << ", ";
  printer << "split = ";
  printLists(printer, getSplit());
  if (!getOffsets().empty()) {
    printer << ", offsets = ";
    printLists(printer, getOffsets());
  }
  if (!getHalos().empty()) {
    printer << ", halos = ";
    printLists(printer, getHalos());
  }
  printer << '>';
}

/// Whether `offsets` are those of `parts` parts.
static bool areOffsets(ArrayRef<int64_t> offsets, int64_t parts) {
  for (size_t k = 1; k < offsets.size(); ++k)
    if (offsets[k] <= offsets[k - 1])
      return false;
  return int64_t(offsets.size()) == parts + 1 && offsets[0] == 0;
}

static bool isHalo(DenseI64ArrayAttr halo) {
  return halo.empty() || (halo.size() == 2 && halo[0] >= 0 && halo[1] >= 0);
}

static int64_t countParts(ArrayRef<int64_t> mesh, DenseI64ArrayAttr axes) {
  int64_t parts = 1;
  for (int64_t axis : axes.asArrayRef())
    parts *= mesh[axis];
  return parts;
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> mesh,
                                 ArrayRef<DenseI64ArrayAttr> split,
                                 std::optional<int64_t> first,
                                 ArrayRef<DenseI64ArrayAttr> offsets,
                                 ArrayRef<DenseI64ArrayAttr> halos) {
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
  llvm::SmallSet<int64_t, 8> seen;
  for (DenseI64ArrayAttr axes : split)
    for (int64_t axis : axes.asArrayRef()) {
      if (axis < 0 || axis >= int64_t(mesh.size()))
        return emitError() << "the mesh has no axis " << axis << " [layout_c2]";
      if (!seen.insert(axis).second)
        return emitError() << "axis " << axis << " is named twice [layout_c3]";
    }
  if (!halos.empty() &&
      (halos.size() != split.size() || !llvm::all_of(halos, isHalo)))
    return emitError() << "'halos' must have a list for each dimension, empty "
                          "or of two numbers from 0 on [layout_c13]";
  if (offsets.empty())
    return success();
  if (offsets.size() != split.size())
    return emitError() << "'offsets' has " << offsets.size()
                       << " lists, and 'split' " << split.size()
                       << " [layout_c11]";
  for (auto [dim, list] : llvm::enumerate(offsets))
    if (int64_t parts = countParts(mesh, split[dim]);
        !list.empty() && !areOffsets(list, parts))
      return emitError() << "'offsets' of dimension " << dim << " must be "
                         << parts + 1 << " growing numbers from 0 [layout_c11]";
  return success();
}

int64_t LayoutAttr::numDevices() const {
  return std::accumulate(getMesh().begin(), getMesh().end(), int64_t(1),
                         std::multiplies<>());
}

int64_t LayoutAttr::parts(unsigned dim) const {
  return countParts(getMesh(), getSplit()[dim]);
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

SmallVector<int64_t> LayoutAttr::boundsOf(unsigned dim, int64_t size) const {
  if (!getOffsets().empty() && !getOffsets()[dim].empty())
    return SmallVector<int64_t>(getOffsets()[dim].asArrayRef());
  SmallVector<int64_t> bounds;
  int64_t count = parts(dim);
  for (int64_t part = 0; part <= count; ++part)
    bounds.push_back(size / count * part + std::min(part, size % count));
  return bounds;
}

SmallVector<std::pair<int64_t, int64_t>>
LayoutAttr::rangesOf(unsigned dim, int64_t size) const {
  int64_t low = 0, high = 0;
  if (!getHalos().empty() && !getHalos()[dim].empty()) {
    low = getHalos()[dim][0];
    high = getHalos()[dim][1];
  }
  SmallVector<int64_t> bounds = boundsOf(dim, size);
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (size_t part = 0; part + 1 < bounds.size(); ++part)
    ranges.push_back({std::max<int64_t>(bounds[part] - low, 0),
                      std::min(bounds[part + 1] + high, size)});
  return ranges;
}

bool LayoutAttr::fits(ArrayRef<int64_t> full) const {
  if (getSplit().size() != full.size())
    return false;
  for (auto [dim, size] : llvm::enumerate(full))
    if ((parts(dim) > 1 && size < parts(dim)) ||
        boundsOf(dim, size).back() != size)
      return false;
  return true;
}

LayoutAttr LayoutAttr::startingAt(int64_t device) const {
  return get(getContext(), getMesh(), getSplit(), device, getOffsets(),
             getHalos());
}

SmallVector<int64_t> LayoutAttr::shardShape(ArrayRef<int64_t> full) const {
  SmallVector<int64_t> shape(full);
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    auto ranges = rangesOf(dim, full[dim]);
    shape[dim] = ranges[0].second - ranges[0].first;
    for (auto [begin, end] : ranges)
      if (end - begin != ranges[0].second - ranges[0].first)
        shape[dim] = ShapedType::kDynamic;
  }
  return shape;
}

SmallVector<int64_t> LayoutAttr::shardShape(ArrayRef<int64_t> full,
                                            int64_t device) const {
  SmallVector<int64_t> shape(full);
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    auto [begin, end] = rangesOf(dim, full[dim])[partOf(dim, device)];
    shape[dim] = end - begin;
  }
  return shape;
}

SmallVector<int64_t> LayoutAttr::shardOffsets(ArrayRef<int64_t> full,
                                              int64_t device) const {
  SmallVector<int64_t> offsets(full.size());
  for (unsigned dim = 0; dim < full.size(); ++dim)
    offsets[dim] = rangesOf(dim, full[dim])[partOf(dim, device)].first;
  return offsets;
}
