// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/KernelPart.h"

#include <algorithm>

namespace mgpu::planner {

static uint32_t along(Dim3 dims, unsigned axis) {
  return axis == 0 ? dims.x : axis == 1 ? dims.y : dims.z;
}

std::optional<Dim3> gridOf(const DagNode &node) {
  if (auto *opaque = std::get_if<OpaqueCall>(&node.work)) {
    if (opaque->isCollective || opaque->splittable == 0 ||
        opaque->splittable > UINT32_MAX)
      return std::nullopt;
    return Dim3{uint32_t(opaque->splittable), 1, 1};
  }
  auto *call = std::get_if<KernelCall>(&node.work);
  if (!call || call->part || node.durationUs)
    return std::nullopt;
  return call->grid;
}

GridPart partAlong(Dim3 grid, unsigned axis, uint32_t index, uint32_t count) {
  GridPart part = GridPart::whole(grid);
  uint64_t size = along(grid, axis);
  uint32_t first = uint32_t(size * index / count),
           end = uint32_t(size * (index + 1) / count);
  (axis == 0 ? part.first.x : axis == 1 ? part.first.y : part.first.z) = first;
  (axis == 0   ? part.count.x
   : axis == 1 ? part.count.y
               : part.count.z) = end - first;
  return part;
}

// The block id is one counter of the address, of `blocks` values, `step` bytes
// apart. The box has it as a dimension, or as a digit of one: dimensions that
// tile are merged. Where several could hold it, they hold the same counter, and
// any of them leads to the same bytes.
static void keepBlocks(Box &box, int64_t step, int64_t blocks, int64_t first,
                       int64_t count) {
  if (step <= 0 || count == blocks)
    return;
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    int64_t size = box.sizes[d], stride = box.strides[d];
    if (stride <= 0 || step % stride != 0)
      continue;
    int64_t inner = step / stride; // how many steps of it one block takes
    if (inner > size / blocks || size % (inner * blocks) != 0)
      continue;
    int64_t outer = size / (inner * blocks);
    box.sizes[d] = inner * count;
    if (outer > 1) {
      box.sizes.insert(box.sizes.begin() + long(d), outer);
      box.strides.insert(box.strides.begin() + long(d), step * blocks);
    }
    box.offset += first * step;
    return;
  }
  // A guard cut the last block short: the importer says so of a dimension that
  // stands alone (KernelAccess.cpp).
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    int64_t size = box.sizes[d], stride = box.strides[d];
    if (stride <= 0 || step % stride != 0)
      continue;
    int64_t inner = step / stride;
    if (size <= (blocks - 1) * inner || size >= blocks * inner)
      continue;
    box.sizes[d] = std::min(size, (first + count) * inner) - first * inner;
    box.offset += first * step;
    return;
  }
}

Box boxOfPart(const BufferUse &use, Dim3 grid, const GridPart &part) {
  Box box = use.box;
  for (unsigned axis = 0; axis < 3; ++axis)
    keepBlocks(box, use.blockSteps[axis], along(grid, axis),
               along(part.first, axis), along(part.count, axis));
  return box;
}

/// The bytes that each of `count` parts touches by a use.
static std::vector<Box> boxesAlong(const BufferUse &use, Dim3 grid,
                                   unsigned axis, uint32_t count) {
  std::vector<Box> boxes;
  boxes.reserve(count);
  for (uint32_t k = 0; k < count; ++k)
    boxes.push_back(boxOfPart(use, grid, partAlong(grid, axis, k, count)));
  return boxes;
}

/// Whether two different parts touch the same bytes by two uses of a buffer.
static bool doPartsMeet(const std::vector<Box> &one,
                        const std::vector<Box> &other) {
  for (size_t i = 0; i < one.size(); ++i)
    for (size_t j = 0; j < other.size(); ++j)
      if (i != j && overlap(one[i], other[j]) != Overlap::None)
        return true;
  return false;
}

bool canPart(const DagNode &node, unsigned axis, uint32_t count) {
  const std::optional<Dim3> grid = gridOf(node);
  if (!grid || along(*grid, axis) < count)
    return false;
  std::vector<const BufferUse *> writes;
  for (const BufferUse &use : node.uses) {
    if (use.writes && use.blockSteps[axis] <= 0)
      return false;
    if (use.writes)
      writes.push_back(&use);
  }
  for (size_t k = 0; k < writes.size(); ++k) {
    const std::vector<Box> mine = boxesAlong(*writes[k], *grid, axis, count);
    if (doPartsMeet(mine, mine))
      return false;
    for (size_t other = 0; other < k; ++other)
      if (writes[other]->buffer == writes[k]->buffer &&
          doPartsMeet(mine, boxesAlong(*writes[other], *grid, axis, count)))
        return false;
  }
  return true;
}

/// A file does not say what a part of a kernel reads: it may be all of it.
static DagNode partOfFile(DagNode node, Dim3 grid, const GridPart &part) {
  const double share = double(part.count.volume()) / double(grid.volume());
  std::get<OpaqueCall>(node.work).splittable = 0;
  node.flops *= share;
  node.bytesWritten = uint64_t(double(node.bytesWritten) * share);
  node.outBytes = 0;
  for (BufferUse &use : node.uses) {
    if (use.writes) {
      use.box = boxOfPart(use, grid, part);
      node.outBytes += uint64_t(use.box.numElements()) * use.box.elementBytes;
    }
    use.blockSteps = {};
  }
  return node;
}

DagNode kernelPart(const DagNode &node, unsigned axis, uint32_t index,
                   uint32_t count) {
  const Dim3 grid = *gridOf(node);
  const GridPart piece = partAlong(grid, axis, index, count);
  if (std::holds_alternative<OpaqueCall>(node.work))
    return partOfFile(node, grid, piece);
  DagNode part = node;
  std::get<KernelCall>(part.work).part = piece;
  const double share = double(piece.count.volume()) /
                       double(std::max<uint64_t>(grid.volume(), 1));
  part.flops *= share;
  if (part.asks)
    *part.asks *= share;
  part.bytesRead = part.bytesWritten = 0;
  for (BufferUse &use : part.uses) {
    use.box = boxOfPart(use, grid, piece);
    use.blockSteps = {}; // they hold for the whole grid, not for a part
    uint64_t bytes = uint64_t(use.box.numElements()) * use.box.elementBytes;
    part.bytesRead += use.reads ? bytes : 0;
    part.bytesWritten += use.writes ? bytes : 0;
  }
  return part;
}

} // namespace mgpu::planner
