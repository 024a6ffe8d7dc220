// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include "planner/dag/DagBuilder.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace mgpu::planner {

void SkippedCandidates::add(const Dag &dag, uint32_t node, std::string why) {
  Left &left = byReason[std::move(why)];
  if (left.count++ == 0)
    left.first = fmt::format("{} \"{}\"", node, dag.nodes[node].name);
}

std::vector<std::string> SkippedCandidates::lines() const {
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const auto &[why, left] : byReason)
    found.emplace_back(left.count, fmt::format("{} left, the first node {}: {}",
                                               left.count, left.first, why));
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::vector<std::string> lines;
  for (auto &[count, line] : found)
    lines.push_back(std::move(line));
  return lines;
}

static bool isOfFile(const DagNode &node) {
  return std::holds_alternative<OpaqueCall>(node.work);
}

/// Whether what two nodes touch says that one must follow the other.
static bool conflict(const DagNode &a, const DagNode &b) {
  for (const BufferUse &one : a.uses)
    for (const BufferUse &other : b.uses)
      if (one.buffer == other.buffer && (one.writes || other.writes) &&
          overlap(one.box, other.box) != Overlap::None)
        return true;
  return false;
}

std::vector<DepEdge> givenEdges(const Dag &dag) {
  std::vector<DepEdge> given;
  if (std::none_of(dag.nodes.begin(), dag.nodes.end(), isOfFile))
    return given;
  for (const DepEdge &edge : dag.edges)
    if (edge.kind != DepKind::Collective &&
        !conflict(dag.node(edge.from), dag.node(edge.to)))
      given.push_back(edge);
  return given;
}

static void shrink(Buffer &buffer) {
  buffer.sizeBytes = 0;
  buffer.shape = {0};
}

/// Shrinks what was of use before and is not now.
static void dropUnused(Dag &dag) {
  std::vector<bool> isUsed(dag.buffers.size(), false);
  for (const DagNode &node : std::as_const(dag.nodes))
    for (const BufferUse &use : node.uses)
      isUsed[use.buffer.value] = true;
  for (size_t b = 0; b < isUsed.size(); ++b)
    if (!isUsed[b])
      shrink(dag.buffers[b]);
}

/// Shares an old node that nothing changes.
static NodeId appendTo(DependencyTracker &tracker, const Dag &dag,
                       NewNode &next, const NewPlaces &moved,
                       std::span<const NodeId> follows) {
  const NodeId same{next.madeOf.front()};
  const bool isNew = next.node != nullptr;
  if (!isNew && !moved)
    return tracker.share(dag, same, follows);
  DagNode node = isNew ? std::move(*next.node) : dag.node(same);
  next.node.reset();
  if (moved)
    forEachBuffer(node, [&](BufferId &id, int64_t &offset) {
      if (auto place = moved(id)) {
        id = place->buffer;
        offset += place->offset;
      }
    });
  if (!isNew && node == dag.node(same))
    return tracker.share(dag, same, follows);
  return tracker.append(std::move(node), follows);
}

Dag replaceNodes(const Dag &dag, const NewBuffers &buffers,
                 std::vector<NewNode> nodes, const NewPlaces &moved) {
  const size_t old = dag.nodes.size();
  const std::vector<DepEdge> given = givenEdges(dag);
  std::vector<uint32_t> beforeFrom(old + 1, 0); // by node: given edges
  for (const DepEdge &edge : given)
    ++beforeFrom[edge.to.value + 1];
  std::partial_sum(beforeFrom.begin(), beforeFrom.end(), beforeFrom.begin());
  Dag changed;
  changed.name = dag.name;
  changed.numDevices = dag.numDevices;
  changed.spmd = dag.spmd;
  changed.residentBytes = dag.residentBytes;
  changed.loop = dag.loop;
  changed.buffers = buffers.all();
  changed.kernels = dag.kernels;
  changed.nodes.reserve(nodes.size());
  changed.edges.reserve(dag.edges.size());
  DependencyTracker tracker(changed);
  std::vector<std::vector<NodeId>> made(old); // by old node
  std::vector<NodeId> follows;
  for (NewNode &next : nodes) {
    follows.clear();
    for (uint32_t of : next.madeOf)
      for (uint32_t k = beforeFrom[of]; k < beforeFrom[of + 1]; ++k) {
        const std::vector<NodeId> &from = made[given[k].from.value];
        follows.insert(follows.end(), from.begin(), from.end());
      }
    const NodeId id = appendTo(tracker, dag, next, moved, follows);
    for (uint32_t of : next.madeOf)
      made[of].push_back(id);
  }
  if (std::any_of(dag.nodes.begin(), dag.nodes.end(), isOfFile))
    dropUnused(changed);
  return changed;
}

BufferId NewBuffers::add(std::string name, DeviceId device, uint64_t bytes) {
  if (names.empty())
    for (const Buffer &other : dag.buffers)
      names.insert(other.name);
  while (!names.insert(name).second)
    name += '\'';
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.device = device;
  buffer.sizeBytes = bytes;
  buffer.shape = {int64_t(bytes)};
  made.push_back(std::move(buffer));
  return BufferId{uint32_t(dag.buffers.size() + made.size() - 1)};
}

std::vector<Buffer> NewBuffers::all() const {
  std::vector<Buffer> buffers;
  buffers.reserve(dag.buffers.size() + made.size());
  buffers = dag.buffers;
  buffers.insert(buffers.end(), made.begin(), made.end());
  for (BufferId id : emptied)
    shrink(buffers[id.value]);
  for (BufferId id : kept)
    buffers[id.value].role = BufferRole::Resident;
  return buffers;
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

std::optional<BufferId> outputOf(const DagNode &node) {
  std::optional<BufferId> found;
  for (const BufferUse &use : node.uses)
    if (use.writes) {
      if (found)
        return std::nullopt;
      found = use.buffer;
    }
  return found;
}

static std::optional<ReduceFacts> reduceOf(const Dag &dag, const DagNode &node,
                                           const OpaqueCall &call,
                                           std::string &why) {
  const uint32_t ranks =
      dag.spmd && call.group == 0 ? dag.numDevices : call.group;
  if (!dag.spmd && node.devices.size() != ranks)
    why = "it is one member's part; what the other ranks do is not in the file";
  else if (ranks < 2)
    why = "it has one member";
  else if (call.bytes == 0)
    why = "its bytes are not in the file";
  else
    return ReduceFacts{call.bytes, ranks};
  return std::nullopt;
}

std::optional<ReduceFacts> reduceOf(const Dag &dag, const DagNode &node,
                                    std::string &why) {
  why.clear();
  if (auto *opaque = std::get_if<OpaqueCall>(&node.work))
    return opaque->isCollective && opaque->kind == CollectiveKind::AllReduce
               ? reduceOf(dag, node, *opaque, why)
               : std::nullopt;
  auto *call = std::get_if<CollectiveCall>(&node.work);
  if (!call || call->kind != CollectiveKind::AllReduce)
    return std::nullopt;
  if (call->members.size() < 2)
    why = "it has one member";
  else if (node.durationUs)
    why = "its duration is given, and it is not known of what it would become";
  else
    return ReduceFacts{uint64_t(bytesOf(call->members[0].sendBox)),
                       uint32_t(call->members.size())};
  return std::nullopt;
}

std::optional<double> frozenPrice(const Rewriting &rewriting,
                                  std::span<const DagNode *const> was,
                                  const DagNode &is) {
  double frozen = 0, estimated = 0;
  auto estimate = [&](DagNode node) {
    Dag alone;
    alone.numDevices = rewriting.dag.numDevices;
    alone.spmd = rewriting.dag.spmd;
    node.durationUs.reset();
    alone.nodes.push_back(std::move(node));
    return rewriting.prices->durationUs(alone, NodeId{0});
  };
  for (const DagNode *node : was) {
    if (!node->durationUs || !rewriting.prices)
      return std::nullopt;
    frozen += *node->durationUs;
    estimated += estimate(*node);
  }
  return estimated > 0 ? frozen * estimate(is) / estimated : frozen;
}

} // namespace mgpu::planner
