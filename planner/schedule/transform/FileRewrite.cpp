// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/FileRewrite.h"

#include "planner/dag/DagBuilder.h"

#include <algorithm>
#include <fmt/format.h>
#include <queue>

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

FileRewrite::FileRewrite(Dag &dag, const TransformContext &context)
    : before(dag.nodes.size()), after(dag.nodes.size()), nodes(dag.nodes),
      gone(dag.nodes.size(), false), users(dag.buffers.size()), dag(dag),
      context(context), place(dag.nodes.size()) {
  for (const DepEdge &edge : dag.edges) {
    before[edge.to.value].push_back(edge.from.value);
    after[edge.from.value].push_back(edge.to.value);
  }
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    place[i] = i;
    for (const BufferUse &use : nodes[i].uses)
      if (std::vector<uint32_t> &list = users[use.buffer.value];
          list.empty() || list.back() != i)
        list.push_back(i);
  }
}

const OpaqueCall *FileRewrite::collective(uint32_t node,
                                          CollectiveKind kind) const {
  auto *call = std::get_if<OpaqueCall>(&nodes[node].work);
  return call && call->isCollective && call->kind == kind ? call : nullptr;
}

std::optional<uint32_t> FileRewrite::ranksOf(uint32_t node,
                                             std::string *why) const {
  auto *call = std::get_if<OpaqueCall>(&nodes[node].work);
  if (!call || !call->isCollective)
    return std::nullopt;
  uint32_t ranks = dag.spmd && call->group == 0 ? dag.numDevices : call->group;
  if (!dag.spmd && nodes[node].devices.size() != ranks)
    *why = "it is one member's part; what the other ranks do is not in the "
           "file";
  else if (ranks < 2)
    *why = "it has one member";
  else if (call->bytes == 0)
    *why = "its bytes are not in the file";
  else
    return ranks;
  return std::nullopt;
}

std::optional<BufferId> FileRewrite::output(uint32_t node) const {
  std::optional<BufferId> found;
  for (const BufferUse &use : nodes[node].uses)
    if (use.writes) {
      if (found)
        return std::nullopt;
      found = use.buffer;
    }
  return found;
}

BufferId FileRewrite::addBuffer(std::string name, DeviceId device,
                                uint64_t bytes) {
  Buffer buffer;
  buffer.name = std::move(name);
  auto taken = [&](const std::string &text) {
    return std::any_of(dag.buffers.begin(), dag.buffers.end(),
                       [&](const Buffer &other) { return other.name == text; });
  };
  while (taken(buffer.name))
    buffer.name += '\'';
  buffer.device = device;
  buffer.sizeBytes = bytes;
  buffer.shape = {int64_t(bytes)};
  dag.buffers.push_back(std::move(buffer));
  users.emplace_back();
  return BufferId{uint32_t(dag.buffers.size() - 1)};
}

void FileRewrite::addEdge(uint32_t from, uint32_t to) {
  std::vector<uint32_t> &list = before[to];
  if (from == to || std::find(list.begin(), list.end(), from) != list.end())
    return;
  list.push_back(from);
  after[from].push_back(to);
}

uint32_t FileRewrite::insert(uint32_t near, DagNode node,
                             std::vector<uint32_t> follows) {
  uint32_t id = uint32_t(nodes.size());
  nodes.push_back(std::move(node));
  gone.push_back(false);
  place.push_back(place[near]);
  before.emplace_back();
  after.emplace_back();
  for (uint32_t from : follows)
    addEdge(from, id);
  return id;
}

void FileRewrite::remove(uint32_t node) {
  gone[node] = true;
  for (uint32_t from : before[node])
    std::erase(after[from], node);
  for (uint32_t to : after[node])
    std::erase(before[to], node);
  before[node].clear();
  after[node].clear();
}

void FileRewrite::follow(uint32_t from, uint32_t to) {
  for (uint32_t next : after[from])
    addEdge(to, next);
}

std::optional<double> FileRewrite::price(const std::vector<DagNode> &was,
                                         const DagNode &is) const {
  double frozen = 0, estimated = 0;
  auto estimate = [&](DagNode node) {
    Dag alone;
    alone.numDevices = dag.numDevices;
    alone.spmd = dag.spmd;
    node.durationUs.reset();
    alone.nodes.push_back(std::move(node));
    return context.prices->durationUs(alone, NodeId{0});
  };
  for (const DagNode &node : was) {
    if (!node.durationUs || !context.prices)
      return std::nullopt;
    frozen += *node.durationUs;
    estimated += estimate(node);
  }
  return estimated > 0 ? frozen * estimate(is) / estimated : frozen;
}

std::vector<uint32_t> FileRewrite::order() const {
  using Entry = std::pair<uint32_t, uint32_t>; // place, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<size_t> missing(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    missing[i] = before[i].size();
    if (!gone[i] && missing[i] == 0)
      ready.emplace(place[i], i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top().second);
    ready.pop();
    for (uint32_t next : after[order.back()])
      if (--missing[next] == 0)
        ready.emplace(place[next], next);
  }
  return order;
}

Result<void> FileRewrite::finish() {
  std::vector<uint32_t> sorted = order();
  if (sorted.size() != size_t(std::count(gone.begin(), gone.end(), false)))
    return fail(ErrorKind::Internal,
                "a transform made nodes depend on each other in a ring");
  dag.nodes.clear();
  dag.edges.clear();
  dag.nodes.reserve(sorted.size());
  DependencyTracker tracker(dag);
  std::vector<uint32_t> number(nodes.size());
  std::vector<bool> used(dag.buffers.size(), false);
  std::vector<NodeId> follows;
  for (uint32_t i : sorted) {
    follows.clear();
    for (uint32_t from : before[i])
      follows.push_back(NodeId{number[from]});
    for (const BufferUse &use : nodes[i].uses)
      used[use.buffer.value] = true;
    number[i] = tracker.append(std::move(nodes[i]), follows).value;
  }
  for (size_t b = 0; b < used.size(); ++b)
    if (!used[b]) {
      dag.buffers[b].sizeBytes = 0;
      dag.buffers[b].shape = {0};
    }
  return {};
}

} // namespace mgpu::planner
