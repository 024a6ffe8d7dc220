// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Parts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Cut> cutsOf(spmd::LayoutAttr layout) {
  SmallVector<Cut> cuts(layout.getSplit().size());
  for (auto [dim, cut] : llvm::enumerate(cuts)) {
    cut.axes = Axes(layout.getSplit()[dim].asArrayRef());
    if (!layout.getOffsets().empty())
      cut.bounds.assign(layout.getOffsets()[dim].asArrayRef().begin(),
                        layout.getOffsets()[dim].asArrayRef().end());
    if (!layout.getHalos().empty() && !layout.getHalos()[dim].empty()) {
      cut.low = layout.getHalos()[dim][0];
      cut.high = layout.getHalos()[dim][1];
    }
  }
  return cuts;
}

spmd::LayoutAttr layoutOfCuts(MLIRContext *context, ArrayRef<int64_t> mesh,
                              ArrayRef<Cut> cuts) {
  auto list = [&](ArrayRef<int64_t> values) {
    return DenseI64ArrayAttr::get(context, values);
  };
  SmallVector<DenseI64ArrayAttr> split, offsets, halos;
  for (const Cut &cut : cuts) {
    split.push_back(list(cut.axes));
    offsets.push_back(list(cut.bounds));
    halos.push_back(cut.hasHalo() ? list({cut.low, cut.high}) : list({}));
  }
  if (llvm::all_of(offsets, [](auto each) { return each.empty(); }))
    offsets.clear();
  if (llvm::all_of(halos, [](auto each) { return each.empty(); }))
    halos.clear();
  return spmd::LayoutAttr::get(context, mesh, split, std::nullopt, offsets,
                               halos);
}

spmd::LayoutAttr layoutOfCuts(MLIRContext *context, ArrayRef<int64_t> mesh,
                              ArrayRef<Axes> cuts) {
  return spmd::LayoutAttr::get(context, mesh,
                               llvm::map_to_vector(cuts, [&](const Axes &axes) {
                                 return DenseI64ArrayAttr::get(context, axes);
                               }));
}

SmallVector<int64_t> equalBounds(int64_t size, int64_t parts) {
  SmallVector<int64_t> bounds;
  for (int64_t part = 0; part <= parts; ++part)
    bounds.push_back(size / parts * part + std::min(part, size % parts));
  return bounds;
}

int64_t countAlong(ArrayRef<int64_t> mesh, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= mesh[axis];
  return count;
}

/// How far apart neighbours along `axis` are: devices are row-major.
static int64_t strideOf(ArrayRef<int64_t> mesh, int64_t axis) {
  int64_t stride = 1;
  for (int64_t size : mesh.drop_front(axis + 1))
    stride *= size;
  return stride;
}

std::vector<std::vector<int64_t>> membersAlong(ArrayRef<int64_t> mesh,
                                               ArrayRef<int64_t> axes) {
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, int64_t(mesh.size())));
  std::map<int64_t, std::vector<int64_t>> groups; // by the place elsewhere
  int64_t size = countAlong(mesh, axes);
  for (int64_t device = 0; device < countAlong(mesh, all); ++device) {
    int64_t rank = 0, elsewhere = device;
    for (int64_t axis : axes) {
      int64_t place = device / strideOf(mesh, axis) % mesh[axis];
      rank = rank * mesh[axis] + place;
      elsewhere -= place * strideOf(mesh, axis);
    }
    groups[elsewhere].resize(size);
    groups[elsewhere][rank] = device;
  }
  std::vector<std::vector<int64_t>> found;
  for (auto &[elsewhere, members] : groups)
    found.push_back(std::move(members));
  return found;
}

ArrayAttr groupsAlong(Builder &b, ArrayRef<int64_t> mesh,
                      ArrayRef<int64_t> axes) {
  SmallVector<Attribute> attributes;
  for (const std::vector<int64_t> &members : membersAlong(mesh, axes))
    attributes.push_back(b.getDenseI64ArrayAttr(members));
  return b.getArrayAttr(attributes);
}

Value rankAlong(OpBuilder &b, Location loc, ArrayRef<int64_t> mesh,
                ArrayRef<int64_t> axes, int64_t first) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value device = spmd::DeviceIndexOp::create(b, loc, b.getIndexType());
  if (first != 0)
    device = arith::SubIOp::create(b, loc, device, constant(first));
  Value rank;
  for (int64_t axis : axes) {
    Value place = device;
    if (int64_t stride = strideOf(mesh, axis); stride != 1)
      place = arith::DivUIOp::create(b, loc, place, constant(stride));
    if (axis != 0)
      place = arith::RemUIOp::create(b, loc, place, constant(mesh[axis]));
    if (rank) {
      rank = arith::MulIOp::create(b, loc, rank, constant(mesh[axis]));
      rank = arith::AddIOp::create(b, loc, rank, place);
    } else {
      rank = place;
    }
  }
  return rank ? rank : constant(0);
}

/// How many elements part `rank` has.
static OpFoldResult sizeOfPart(OpBuilder &b, Location loc, Value rank,
                               int64_t size, int64_t parts) {
  if (size % parts == 0)
    return b.getIndexAttr(size / parts);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value isLarge = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rank,
                                        constant(size % parts));
  return arith::SelectOp::create(b, loc, isLarge, constant(size / parts + 1),
                                 constant(size / parts))
      .getResult();
}

Value beginOfPart(OpBuilder &b, Location loc, Value rank, int64_t size,
                  int64_t parts) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value begin = arith::MulIOp::create(b, loc, rank, constant(size / parts));
  if (size % parts == 0)
    return begin;
  Value larger = arith::MinUIOp::create(b, loc, rank, constant(size % parts));
  return arith::AddIOp::create(b, loc, begin, larger);
}

OpFoldResult valueOfRank(OpBuilder &b, Location loc, Value rank,
                         ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return b.getIndexAttr(values[0]);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value found = constant(values[0]);
  for (size_t k = 1; k < values.size(); ++k) {
    if (values[k] == values[k - 1])
      continue;
    Value isFrom = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                         rank, constant(k));
    found = arith::SelectOp::create(b, loc, isFrom, constant(values[k]), found);
  }
  return found;
}

SmallVector<OpFoldResult> sizesOfPart(OpBuilder &b, Location loc,
                                      ArrayRef<int64_t> full,
                                      spmd::LayoutAttr layout) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(layout.shardShape(full))) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    Value rank =
        rankAlong(b, loc, layout.getMesh(), layout.getSplit()[dim].asArrayRef(),
                  layout.firstDevice());
    if (layout.getOffsets().empty() && layout.getHalos().empty()) {
      sizes.push_back(sizeOfPart(b, loc, rank, full[dim], layout.parts(dim)));
      continue;
    }
    SmallVector<int64_t> each;
    for (auto [begin, end] : layout.rangesOf(dim, full[dim]))
      each.push_back(end - begin);
    sizes.push_back(valueOfRank(b, loc, rank, each));
  }
  return sizes;
}

Value emptyPart(OpBuilder &b, Location loc, ArrayRef<int64_t> full,
                Type element, spmd::LayoutAttr layout) {
  return tensor::EmptyOp::create(b, loc, sizesOfPart(b, loc, full, layout),
                                 element);
}

/// `size` elements of dimension `dim`, from `begin` on. MLIR has no slice of a
/// tensor without elements.
static Value sliceBetween(OpBuilder &b, Location loc, Value tensor,
                          unsigned dim, OpFoldResult begin, OpFoldResult size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  offsets[dim] = begin;
  sizes[dim] = size;
  if (llvm::is_contained(type.getShape(), 0))
    return tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, ones);
}

Value sliceOf(OpBuilder &b, Location loc, Value tensor, unsigned dim,
              Value rank, int64_t parts) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  return sliceBetween(b, loc, tensor, dim,
                      beginOfPart(b, loc, rank, size, parts),
                      sizeOfPart(b, loc, rank, size, parts));
}

Value sliceOf(OpBuilder &b, Location loc, Value tensor, unsigned dim,
              Value rank, ArrayRef<std::pair<int64_t, int64_t>> ranges) {
  SmallVector<int64_t> begins, sizes;
  for (auto [begin, end] : ranges) {
    begins.push_back(begin);
    sizes.push_back(end - begin);
  }
  return sliceBetween(b, loc, tensor, dim, valueOfRank(b, loc, rank, begins),
                      valueOfRank(b, loc, rank, sizes));
}

int64_t bytesOf(RankedTensorType type, ArrayRef<int64_t> shape) {
  Type element = type.getElementType();
  return ShapedType::getNumElements(shape) *
         (element.isIntOrFloat()
              ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
              : 8);
}

} // namespace mgpu::conversion
