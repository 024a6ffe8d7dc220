// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/Communication.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;

bool isCommunication(const DagNode &node) {
  return node.devices.size() > 1 ||
         std::holds_alternative<CollectiveCall>(node.work);
}

bool isOn(const DagNode &node, DeviceId device) {
  if (node.devices.empty())
    return device.value == 0;
  return std::find(node.devices.begin(), node.devices.end(), device) !=
         node.devices.end();
}

std::vector<DeviceId> communicatorOf(const Dag &dag, const DagNode &node) {
  std::vector<DeviceId> members;
  const auto *call = std::get_if<CollectiveCall>(&node.work);
  if (!call || call->kind == CollectiveKind::SendRecv) {
    for (uint32_t k = 0; k < dag.numDevices; ++k)
      members.push_back({int32_t(k)});
    return members;
  }
  for (const CollectiveMember &member : call->members)
    members.push_back(member.device);
  return members;
}

bool shareTwoRanks(std::span<const DeviceId> a, std::span<const DeviceId> b) {
  size_t shared = 0;
  for (DeviceId device : a)
    shared += std::find(b.begin(), b.end(), device) != b.end();
  return shared >= 2;
}

std::vector<std::vector<DeviceId>> communicatingGroups(const Dag &dag) {
  std::vector<std::vector<DeviceId>> groups(1);
  for (uint32_t k = 0; k < dag.numDevices; ++k)
    groups[0].push_back({int32_t(k)});
  for (const DagNode &node : dag.nodes) {
    const auto *call = std::get_if<CollectiveCall>(&node.work);
    if (!call || call->kind == CollectiveKind::SendRecv)
      continue;
    std::vector<DeviceId> members = communicatorOf(dag, node);
    if (std::find(groups.begin(), groups.end(), members) == groups.end())
      groups.push_back(std::move(members));
  }
  return groups;
}

Result<void> checkAcrossRanks(const Dag &dag) {
  auto text = [&](const DagNode &node) {
    return fmt::format("'{}'{}", node.name,
                       node.location.empty() ? "" : " at " + node.location);
  };
  for (const DepEdge &edge : dag.edges) {
    const DagNode &from = dag.node(edge.from), &to = dag.node(edge.to);
    // Communications that share no GPU are in order for planning's sake only.
    if (from.phase != to.phase ||
        (isCommunication(from) && isCommunication(to)))
      continue;
    bool meets = false;
    for (uint32_t k = 0; k < dag.numDevices && !meets; ++k)
      meets = isOn(from, {int32_t(k)}) && isOn(to, {int32_t(k)});
    if (!meets)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("{} must follow {}, on another GPU and by way of the "
                      "host's memory: several GPUs wait for each other in "
                      "collectives, send and recv alone; use one GPU as "
                      "cuda:K/{}",
                      text(to), text(from), dag.numDevices));
  }
  return {};
}

} // namespace mgpu::capture
