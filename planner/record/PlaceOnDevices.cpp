// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/PlaceOnDevices.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

namespace {

class Placing {
public:
  Placing(Program &program, uint32_t processes)
      : program(program), dag(program.dag), processes(processes),
        users(dag.buffers.size()) {
    for (uint32_t k = 0; k < dag.nodes.size(); ++k)
      for (const BufferUse &use : std::as_const(dag.nodes)[k].uses)
        if (auto &list = users[use.buffer.value];
            list.empty() || list.back() != k)
          list.push_back(k);
  }

  Result<void> run();

private:
  const DagNode &node(uint32_t k) const { return std::as_const(dag.nodes)[k]; }
  const CopyCall *copyOf(uint32_t k) const {
    return std::get_if<CopyCall>(&node(k).work);
  }
  DeviceId deviceOf(size_t k, size_t count) const {
    return {dag.numDevices == 1 ? 0 : int32_t(k / (count / processes))};
  }
  bool isOfCopies(BufferId id) const {
    return std::ranges::all_of(users[id.value],
                               [&](uint32_t k) { return copyOf(k); });
  }
  void moveTo(BufferId id, DeviceId device);
  Result<void> moveResults();
  std::optional<std::pair<BufferId, BufferId>> standsFor(uint32_t k) const;
  void replace(BufferId old, BufferId by);
  void listDevices(DagNode &node);
  void drop(const std::vector<bool> &isDropped);

  Program &program;
  Dag &dag;
  uint32_t processes;
  std::vector<std::vector<uint32_t>> users; ///< nodes, by buffer
};

void Placing::moveTo(BufferId id, DeviceId device) {
  dag.buffers[id.value].device = device;
  for (uint32_t k : users[id.value])
    listDevices(dag.nodes[k]);
}

/// A copy lists its device ends.
void Placing::listDevices(DagNode &node) {
  const CopyCall &call = std::get<CopyCall>(node.work);
  std::vector<DeviceId> ends;
  for (BufferId id : {call.source, call.destination})
    if (const DeviceId device = dag.buffer(id).device; !device.isHost())
      ends.push_back(device);
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  node.devices = std::move(ends);
}

Result<void> Placing::moveResults() {
  const size_t count = program.results.size();
  for (size_t k = 0; k < count; ++k) {
    ProgramArgument &result = program.results[k];
    Buffer &buffer = dag.buffers[result.buffer->value];
    if (buffer.role != BufferRole::Result || !isOfCopies(*result.buffer))
      return fail(ErrorKind::Unsupported,
                  fmt::format("result '{}' is not copied from a device, so it "
                              "cannot be made there",
                              result.name));
    buffer.role = BufferRole::Argument;
    buffer.index = uint32_t(program.arguments.size());
    moveTo(*result.buffer, deviceOf(k, count));
    result.role = ArgumentRole::Output;
    program.arguments.push_back(std::move(result));
  }
  program.results.clear();
  return {};
}

/// The temporary buffer that a copy spares, and the one that stands for it:
/// nothing but the copy writes a copy of an argument, or uses a result.
std::optional<std::pair<BufferId, BufferId>>
Placing::standsFor(uint32_t k) const {
  const CopyCall *copy = copyOf(k);
  if (!copy)
    return std::nullopt;
  const Buffer &from = dag.buffer(copy->source),
               &to = dag.buffer(copy->destination);
  if (from.device != to.device || from.device.isHost() ||
      !isWhole(copy->sourceBox, from) || !isWhole(copy->destinationBox, to))
    return std::nullopt;
  auto only = [&](BufferId id, auto holds) {
    return std::ranges::all_of(users[id.value], [&](uint32_t user) {
      return user == k ||
             (node(user).phase == node(k).phase &&
              std::ranges::all_of(node(user).uses, [&](const BufferUse &use) {
                return use.buffer != id || holds(use);
              }));
    });
  };
  auto isRead = [](const BufferUse &use) { return !use.writes; };
  if (from.role == BufferRole::Argument && to.role == BufferRole::Temporary &&
      only(copy->source, isRead) && only(copy->destination, isRead))
    return std::pair(copy->destination, copy->source);
  if (to.role == BufferRole::Argument && from.role == BufferRole::Temporary &&
      users[copy->destination.value].size() == 1 &&
      only(copy->source, [](const BufferUse &) { return true; }))
    return std::pair(copy->source, copy->destination);
  return std::nullopt;
}

void Placing::replace(BufferId old, BufferId by) {
  for (uint32_t k : users[old.value])
    forEachBuffer(dag.nodes[k], [&](BufferId &id, int64_t &) {
      if (id == old)
        id = by;
    });
  auto &into = users[by.value];
  into.insert(into.end(), users[old.value].begin(), users[old.value].end());
  std::ranges::sort(into);
  into.erase(std::ranges::unique(into).begin(), into.end());
  users[old.value].clear();
  dag.buffers[old.value].sizeBytes = 0; // nothing is left of it
  dag.buffers[old.value].shape = {0};
}

/// Takes nodes out. An order that led through one of them leads past it.
void Placing::drop(const std::vector<bool> &isDropped) {
  std::vector<std::vector<NodeId>> before(dag.nodes.size());
  std::vector<uint32_t> numbers;
  SharedItems<DagNode> kept;
  for (uint32_t k = 0; k < dag.nodes.size(); ++k) {
    numbers.push_back(uint32_t(kept.size()));
    if (!isDropped[k])
      kept.share(dag.nodes, k);
  }
  std::vector<DepEdge> edges;
  for (const DepEdge &edge : dag.edges) { // by the node they lead to
    std::vector<NodeId> from{edge.from};
    if (isDropped[edge.from.value])
      from = before[edge.from.value];
    if (isDropped[edge.to.value]) {
      auto &list = before[edge.to.value];
      list.insert(list.end(), from.begin(), from.end());
      continue;
    }
    for (NodeId each : from)
      edges.push_back(
          {{numbers[each.value]}, {numbers[edge.to.value]}, edge.kind});
  }
  dag.nodes = std::move(kept);
  dag.edges = std::move(edges);
  dag.normalize();
}

Result<void> Placing::run() {
  const size_t count = program.arguments.size();
  for (size_t k = 0; k < count; ++k)
    if (const auto buffer = program.arguments[k].buffer;
        buffer && program.arguments[k].role == ArgumentRole::Input &&
        isOfCopies(*buffer))
      moveTo(*buffer, deviceOf(k, count));
  MGPU_TRY(moveResults());
  std::vector<bool> isDropped(dag.nodes.size());
  for (uint32_t k = 0; k < dag.nodes.size(); ++k)
    if (auto found = standsFor(k)) {
      const auto [old, by] = *found;
      isDropped[k] = true;
      for (BufferId id : {old, by})
        std::erase(users[id.value], k);
      replace(old, by);
    }
  drop(isDropped);
  return program.check();
}

} // namespace

Result<void> placeOnDevices(Program &program, uint32_t processes) {
  return Placing(program, processes).run();
}

} // namespace mgpu::planner
