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

GraphPart::GraphPart(const Dag &dag, std::optional<device::DevicePart> part)
    : dag(dag), part(part) {
  if (part)
    findBuffers();
}

void GraphPart::findBuffers() {
  isWritten.assign(dag.buffers.size(), false);
  isHeld.assign(dag.buffers.size(), false);
  auto mark = [](std::vector<bool> &all, BufferId id) {
    if (id.value < all.size())
      all[id.value] = true;
  };
  for (const DagNode &node : dag.nodes) {
    for (const BufferUse &use : node.uses)
      if (use.writes)
        mark(isWritten, use.buffer);
    if (const auto *copy = std::get_if<CopyCall>(&node.work))
      mark(isWritten, copy->destination);
  }
  for (const DagNode &node : dag.nodes) {
    if (!takesPart(node))
      continue;
    for (const BufferUse &use : node.uses)
      mark(isHeld, use.buffer);
    if (const auto *copy = std::get_if<CopyCall>(&node.work))
      mark(isHeld, copy->source);
  }
  for (size_t k = 0; k < dag.buffers.size(); ++k) {
    const DeviceId device = dag.buffers[k].device;
    if (!device.isHost())
      isHeld[k] = part->holds(device);
    else if (part->sharesHost || isWritten[k] || part->hasHost)
      isHeld[k] = part->sharesHost || part->hasHost;
  }
}

std::vector<DeviceId> GraphPart::placesOf(const DagNode &node) const {
  std::vector<DeviceId> places = node.devices;
  auto addHost = [&](BufferId id) {
    if (hasOwnHost() && id.value < dag.buffers.size() &&
        dag.buffer(id).device.isHost() && isWritten[id.value])
      places.push_back(DeviceId::host());
  };
  for (const BufferUse &use : node.uses)
    addHost(use.buffer);
  if (const auto *copy = std::get_if<CopyCall>(&node.work)) {
    addHost(copy->source);
    addHost(copy->destination);
  }
  if (places.empty())
    places.push_back(DeviceId::host());
  return places;
}

bool GraphPart::takesPart(const DagNode &node) const {
  if (!part)
    return true;
  const std::vector<DeviceId> places = placesOf(node);
  return std::any_of(places.begin(), places.end(),
                     [&](DeviceId place) { return part->holds(place); });
}

bool GraphPart::isCommunication(const DagNode &node) const {
  if (!hasOwnHost())
    return part && capture::isCommunication(node);
  const std::vector<DeviceId> places = placesOf(node);
  return takesPart(node) &&
         !std::all_of(places.begin(), places.end(),
                      [&](DeviceId place) { return part->holds(place); });
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

static std::string text(const DagNode &node) {
  return fmt::format("'{}'{}", node.name,
                     node.location.empty() ? "" : " at " + node.location);
}

Result<void> checkAcrossProcesses(const Dag &dag) {
  for (const Buffer &buffer : dag.buffers)
    if (buffer.role == BufferRole::Argument && !buffer.device.isHost())
      return fail(ErrorKind::Unsupported,
                  fmt::format("argument '{}' lies on device {}, and a program "
                              "of several processes has arguments on the host "
                              "alone: open it in one process, from C or Python",
                              buffer.name, buffer.device.value));
  return {};
}

Result<void> checkAcrossHosts(const Dag &dag) {
  MGPU_TRY(checkAcrossProcesses(dag));
  std::vector<bool> isWritten(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      isWritten[use.buffer.value] = isWritten[use.buffer.value] || use.writes;
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (!std::holds_alternative<CopyCall>(node.work) &&
          !isOn(node, DeviceId{0}) && dag.buffer(use.buffer).device.isHost() &&
          isWritten[use.buffer.value])
        return fail(ErrorKind::Unsupported,
                    fmt::format("{} works on the host's memory '{}', which the "
                                "program writes, and device 0 alone has that "
                                "where each process has memory of its own: "
                                "copy it to the device, or run one process",
                                text(node), dag.buffer(use.buffer).name));
  return {};
}

Result<void> checkAcrossRanks(const Dag &dag) {
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

Result<void> checkAcrossGpus(const Dag &dag) {
  MGPU_TRY(checkAcrossRanks(dag));
  return checkAcrossProcesses(dag);
}

} // namespace mgpu::capture
