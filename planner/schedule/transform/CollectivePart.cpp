// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/CollectivePart.h"

#include "device/api/CopyNest.h"

#include <tuple>

namespace mgpu::planner {

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
