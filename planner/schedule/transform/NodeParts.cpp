// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/NodeParts.h"

#include "device/api/CopyNest.h"

#include <algorithm>
#include <tuple>

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

std::optional<CollectiveCall> callOf(const DagNode &node) {
  if (auto *call = std::get_if<CollectiveCall>(&node.work))
    return *call;
  auto *opaque = std::get_if<OpaqueCall>(&node.work);
  if (!opaque || !opaque->isCollective ||
      opaque->kind != CollectiveKind::AllReduce ||
      node.outBytes != opaque->bytes)
    return std::nullopt;
  const BufferUse *from = nullptr, *to = nullptr;
  for (const BufferUse &use : node.uses) {
    if ((use.reads && from) || (use.writes && to))
      return std::nullopt;
    from = use.reads ? &use : from;
    to = use.writes ? &use : to;
  }
  const Box all = Box::flat(0, int64_t(opaque->bytes));
  if (!from || !to || !(from->box == all) || !(to->box == all))
    return std::nullopt;
  CollectiveCall call;
  call.elementType = ElementType::I8;
  call.members = {{node.devices.front(), from->buffer, to->buffer, all, all}};
  return call;
}

bool sends(const CollectiveCall &call, size_t rank) {
  return sidesOf(call, rank).sends;
}
bool receives(const CollectiveCall &call, size_t rank) {
  const CollectiveMember &member = call.members[rank];
  // A root does not write what it keeps where it is.
  return sidesOf(call, rank).receives &&
         (call.kind != CollectiveKind::Broadcast || rank != call.root ||
          member.send != member.recv || !(member.sendBox == member.recvBox));
}

CollectiveSlices slicesOf(const CollectiveCall &call, size_t rank) {
  size_t ranks = call.members.size();
  const CollectiveMember &member = call.members[rank];
  switch (call.kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Broadcast:
  case CollectiveKind::Permute:
  case CollectiveKind::SendRecv:
    return {1, 1};
  case CollectiveKind::AllGather:
    // In place it sends its slice of the whole.
    return {member.sendBox.numElements() == member.recvBox.numElements() ? ranks
                                                                         : 1,
            ranks};
  case CollectiveKind::ReduceScatter:
    return {ranks, 1};
  case CollectiveKind::AllToAll:
    return {ranks, ranks};
  }
  return {1, 1};
}

int64_t sliceElements(const CollectiveCall &call) {
  int64_t elements = 0;
  for (size_t rank = 0; rank < call.members.size(); ++rank) {
    const CollectiveMember &member = call.members[rank];
    CollectiveSlices slices = slicesOf(call, rank);
    for (auto [box, count, isUsed] :
         {std::tuple(&member.sendBox, slices.send, sends(call, rank)),
          std::tuple(&member.recvBox, slices.recv, receives(call, rank))}) {
      if (!isUsed)
        continue;
      int64_t mine = box->numElements() / int64_t(count);
      if (mine == 0 || (elements != 0 && mine != elements))
        return 0;
      elements = mine;
    }
  }
  return elements;
}

/// Elements [begin, end) of each of `slices` equal slices of a box, where they
/// are a box: whole rows, if the elements of a slice do not follow each other.
static std::optional<Box> partOfSlices(const Box &whole, size_t slices,
                                       int64_t begin, int64_t end) {
  const auto count = int64_t(slices);
  Box box = device::collapse(whole);
  const int64_t elements = box.numElements() / count;
  if (box.sizes.empty() || box.sizes[0] % count != 0 || elements < end)
    return std::nullopt;
  // The first slice, and how far the next one is.
  box.sizes[0] /= count;
  const int64_t step = box.sizes[0] * box.strides[0];
  if (box.sizes[0] == 1 && box.sizes.size() > 1) {
    box.sizes.erase(box.sizes.begin());
    box.strides.erase(box.strides.begin());
  }
  const int64_t row = elements / box.sizes[0];
  if (begin % row != 0 || end % row != 0)
    return std::nullopt;
  box.offset += begin / row * box.strides[0];
  box.sizes[0] = (end - begin) / row;
  if (count > 1) {
    box.sizes.insert(box.sizes.begin(), count);
    box.strides.insert(box.strides.begin(), step);
  }
  return box;
}

std::vector<CollectiveCall> cutCollective(const CollectiveCall &call,
                                          const std::vector<int64_t> &way) {
  const uint32_t count = uint32_t(way.size()) - 1;
  size_t ranks = call.members.size();
  std::vector<CollectiveCall> parts(count, call);
  for (size_t rank = 0; rank < ranks; ++rank)
    for (uint32_t k = 0; k < count; ++k) {
      const CollectiveMember &whole = call.members[rank];
      CollectiveMember &part = parts[k].members[rank];
      CollectiveSlices slices = slicesOf(call, rank);
      std::optional<Box> from =
          partOfSlices(whole.sendBox, slices.send, way[k], way[k + 1]);
      std::optional<Box> to =
          partOfSlices(whole.recvBox, slices.recv, way[k], way[k + 1]);
      if ((sends(call, rank) && !from) || (receives(call, rank) && !to))
        return {};
      // A side that says nothing is cut alike where it is as long.
      part.sendBox = from.value_or(whole.sendBox);
      part.recvBox = to.value_or(whole.recvBox);
    }
  // No later part may read what an early one writes.
  for (size_t to = 0; to < ranks; ++to)
    for (size_t from = 0; from < ranks; ++from) {
      if (!receives(call, to) || !sends(call, from) ||
          call.members[to].recv != call.members[from].send)
        continue;
      for (uint32_t early = 0; early < count; ++early)
        for (uint32_t late = early + 1; late < count; ++late)
          if (overlap(parts[early].members[to].recvBox,
                      parts[late].members[from].sendBox) != Overlap::None)
            return {};
    }
  return parts;
}

DagNode collectivePart(const DagNode &node, const CollectiveCall &call,
                       uint32_t of) {
  DagNode part = node;
  part.uses.clear();
  for (size_t rank = 0; rank < call.members.size(); ++rank) {
    const CollectiveMember &member = call.members[rank];
    bool from = sends(call, rank), to = receives(call, rank);
    if (from && to && member.send == member.recv &&
        member.sendBox == member.recvBox) {
      part.uses.push_back({member.send, member.sendBox, true, true});
      continue;
    }
    if (from)
      part.uses.push_back({member.send, member.sendBox, true, false});
    if (to)
      part.uses.push_back({member.recv, member.recvBox, false, true});
  }
  part.bytesRead /= of;
  part.bytesWritten /= of;
  part.flops /= of; // parts are nearly equal
  auto *opaque = std::get_if<OpaqueCall>(&part.work);
  if (!opaque) {
    part.work = call;
    return part;
  }
  const Box &box = call.members.front().recvBox;
  opaque->bytes = part.outBytes =
      uint64_t(box.numElements()) * box.elementBytes;
  return part;
}

} // namespace mgpu::planner
