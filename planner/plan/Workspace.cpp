// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/Workspace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

void addWorkspaces(Dag &dag, Plan &plan, std::span<const uint64_t> bytes) {
  auto needOf = [&](const DagNode &node) -> uint64_t {
    const auto *call = std::get_if<KernelCall>(&node.work);
    return call && call->kernel.value < bytes.size() ? bytes[call->kernel.value]
                                                     : 0;
  };
  std::map<PlanStream, uint64_t> needs;
  for (const PlanStep &step : plan.steps)
    if (uint64_t need = needOf(dag.node(step.node));
        need && !step.streams.empty())
      needs[step.streams[0]] = std::max(needs[step.streams[0]], need);
  std::map<PlanStream, BufferId> buffers;
  for (const auto &[stream, need] : needs) {
    BufferId id{uint32_t(dag.buffers.size())};
    Buffer &buffer = dag.buffers.emplace_back();
    buffer.name = fmt::format("workspace {}.{}", stream.device.value,
                              stream.stream.value);
    buffer.device = stream.device;
    buffer.role = BufferRole::Temporary;
    buffer.elementType = ElementType::I8;
    buffer.shape = {int64_t(need)};
    buffer.sizeBytes = need;
    uint64_t &arena = plan.arenaBytes[size_t(stream.device.value)];
    arena = (arena + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
    plan.placements.push_back({id, arena});
    arena += need;
    buffers.emplace(stream, id);
  }
  for (const PlanStep &step : plan.steps) {
    DagNode &node = dag.nodes[step.node.value];
    if (needOf(node) == 0 || step.streams.empty())
      continue;
    BufferId id = buffers.at(step.streams[0]);
    Box box = Box::flat(0, int64_t(dag.buffer(id).sizeBytes));
    node.uses.push_back({id, std::move(box), /*reads=*/false, /*writes=*/true});
    std::get<KernelCall>(node.work).arguments.push_back({id, 0});
  }
  for (size_t k = 0; k < std::min(bytes.size(), dag.kernels.size()); ++k)
    dag.kernels[k].numArguments += bytes[k] > 0;
}

uint64_t mostWorkspace(const Dag &dag, const std::vector<bool> &isUser,
                       uint32_t streamsPerDevice, uint64_t bytes) {
  std::map<DeviceId, uint64_t> calls;
  uint64_t most = 0;
  for (const DagNode &node : dag.nodes) {
    const auto *call = std::get_if<KernelCall>(&node.work);
    if (call && call->kernel.value < isUser.size() &&
        isUser[call->kernel.value] && !node.devices.empty())
      most = std::max(most, ++calls[node.devices[0]]);
  }
  return std::min<uint64_t>(most, streamsPerDevice) * bytes;
}

} // namespace mgpu::planner
