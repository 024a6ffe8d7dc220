// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spmd.move: copies of boxes from device to device.
#include "dialect/conversion/spmd/Spread.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// Part of a tensor: where it begins, and its sizes.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  bool operator==(const Box &other) const {
    return offsets == other.offsets && sizes == other.sizes;
  }
};

Box boxOf(spmd::LayoutAttr layout, ArrayRef<int64_t> full, int64_t device) {
  return {layout.shardOffsets(full, device), layout.shardShape(full, device)};
}

/// What both have; nothing where that is empty.
std::optional<Box> intersect(const Box &a, const Box &b) {
  Box both;
  for (size_t dim = 0; dim < a.sizes.size(); ++dim) {
    int64_t begin = std::max(a.offsets[dim], b.offsets[dim]);
    int64_t end =
        std::min(a.offsets[dim] + a.sizes[dim], b.offsets[dim] + b.sizes[dim]);
    if (begin >= end)
      return std::nullopt;
    both.offsets.push_back(begin);
    both.sizes.push_back(end - begin);
  }
  return both;
}

/// `box` of a buffer that holds `whole`.
Value viewOf(OpBuilder &b, Location loc, Value buffer, const Box &whole,
             const Box &box) {
  if (box == whole)
    return buffer;
  SmallVector<OpFoldResult> offsets, sizes;
  for (size_t dim = 0; dim < box.sizes.size(); ++dim) {
    offsets.push_back(b.getIndexAttr(box.offsets[dim] - whole.offsets[dim]));
    sizes.push_back(b.getIndexAttr(box.sizes[dim]));
  }
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return memref::SubViewOp::create(b, loc, buffer, offsets, sizes, ones);
}

} // namespace

/// Each distinct part is copied from one of the devices that hold it: the
/// device itself where it does, else one after the other, so that all give.
void Spread::spreadMove(spmd::MoveOp op) {
  ArrayRef<int64_t> full = op.getFull();
  spmd::LayoutAttr from = op.getFrom(), to = op.getTo();
  SmallVector<std::pair<Box, SmallVector<int64_t>>> parts; // and who has them
  for (int64_t device = from.firstDevice(); device < from.endDevice();
       ++device) {
    if (!checkBuffers(device, op))
      return;
    Box box = boxOf(from, full, device);
    auto *found =
        llvm::find_if(parts, [&](auto &part) { return part.first == box; });
    if (found == parts.end())
      parts.push_back({box, {device}});
    else
      found->second.push_back(device);
  }
  for (int64_t device = to.firstDevice(); device < to.endDevice(); ++device) {
    Box target = boxOf(to, full, device);
    for (const auto &[part, holders] : parts) {
      std::optional<Box> piece = intersect(part, target);
      if (!piece)
        continue;
      int64_t source = llvm::is_contained(holders, device)
                           ? device
                           : holders[device % holders.size()];
      Location loc = op.getLoc();
      ir::MemcpyOp::create(
          b, loc, viewOf(b, loc, on(device, op.getInit()), target, *piece),
          viewOf(b, loc, on(source, op.getInput()), part, *piece),
          devices[device], devices[source], Value());
    }
  }
}

} // namespace mgpu::conversion
