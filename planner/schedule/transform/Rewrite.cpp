// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include "planner/dag/DagBuilder.h"

namespace mgpu::planner {

void replaceNodes(Dag &dag, std::vector<DagNode> nodes) {
  dag.nodes.clear();
  dag.edges.clear();
  dag.nodes.reserve(nodes.size());
  DependencyTracker tracker(dag);
  for (DagNode &node : nodes)
    tracker.append(std::move(node));
}

void moveBuffers(
    DagNode &node,
    const std::function<std::optional<NewPlace>(BufferId)> &moved) {
  auto move = [&](BufferId &id, Box &box) {
    if (auto place = moved(id)) {
      id = place->buffer;
      box.offset += place->offset;
    }
  };
  for (BufferUse &use : node.uses)
    move(use.buffer, use.box);
  if (auto *kernel = std::get_if<KernelCall>(&node.work)) {
    for (KernelArgument &argument : kernel->arguments)
      if (auto *id = std::get_if<BufferId>(&argument.value))
        if (auto place = moved(*id)) {
          *id = place->buffer;
          argument.offsetBytes += place->offset;
        }
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    move(copy->source, copy->sourceBox);
    move(copy->destination, copy->destinationBox);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    for (CollectiveMember &member : call->members) {
      move(member.send, member.sendBox);
      move(member.recv, member.recvBox);
    }
  }
}

std::vector<BufferUse> usesOf(const CollectiveCall &call) {
  std::vector<BufferUse> uses;
  for (const CollectiveMember &member : call.members) {
    if (member.send == member.recv && member.sendBox == member.recvBox) {
      uses.push_back({member.send, member.sendBox, true, true});
      continue;
    }
    uses.push_back({member.send, member.sendBox, true, false});
    uses.push_back({member.recv, member.recvBox, false, true});
  }
  return uses;
}

int64_t bytesOf(const Box &box) {
  return box.numElements() * int64_t(box.elementBytes);
}

std::optional<Box> partOf(const Box &box, size_t index, size_t count) {
  int64_t elements = box.numElements();
  if (!box.isContiguous() || elements == 0 || elements % int64_t(count) != 0)
    return std::nullopt;
  int64_t share = elements / int64_t(count), width = box.elementBytes;
  return Box{box.byteRange().first + int64_t(index) * share * width,
             {share},
             {width},
             box.elementBytes};
}

bool isWhole(const Box &box, const Buffer &buffer) {
  return box.isContiguous() && box.byteRange().first == 0 &&
         uint64_t(bytesOf(box)) == buffer.sizeBytes;
}

} // namespace mgpu::planner
