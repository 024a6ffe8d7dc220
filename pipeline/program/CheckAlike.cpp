// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/CheckAlike.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace mgpu::pipeline {

namespace {

using Group = std::vector<DeviceId>;

/// How many machines `group` is on where it begins at device `first`.
size_t machinesAt(const Group &group, uint32_t first, uint32_t perMachine) {
  std::set<uint32_t> machines;
  for (DeviceId device : group)
    machines.insert((uint32_t(device.value) + first) / perMachine);
  return machines.size();
}

/// Puts `group`, which has device 0, at the first device that is in none yet,
/// until all are in one.
bool isAlike(const Group &group, uint32_t numDevices, uint32_t perMachine) {
  std::vector<bool> isIn(numDevices);
  const size_t machines = machinesAt(group, 0, perMachine);
  for (uint32_t first = 0; first < numDevices; ++first) {
    if (isIn[first])
      continue;
    for (DeviceId device : group) {
      const uint32_t at = uint32_t(device.value) + first;
      if (at >= numDevices || isIn[at])
        return false;
      isIn[at] = true;
    }
    if (machinesAt(group, first, perMachine) != machines)
      return false;
  }
  return true;
}

bool isCollective(const planner::DagNode &node) {
  const auto *call = std::get_if<planner::OpaqueCall>(&node.work);
  return call && call->isCollective;
}

/// Between two collectives a program has all of one device before all of the
/// next, so what one writes to the host's memory and others read there makes
/// them wait for it.
Result<void> checkHost(const planner::Dag &dag) {
  std::set<std::pair<uint32_t, uint32_t>> read, written; ///< part, buffer
  uint32_t part = 0;
  for (const planner::DagNode &node : dag.nodes) {
    part += isCollective(node);
    for (const planner::BufferUse &use : node.uses)
      if (dag.buffer(use.buffer).device.isHost()) {
        if (use.reads)
          read.insert({part, use.buffer.value});
        if (use.writes)
          written.insert({part, use.buffer.value});
      }
  }
  for (const auto &each : written)
    if (read.contains(each))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is read and written in the host's memory, "
                              "by way of which devices wait for each other, so "
                              "that one does not stand for all: plan without "
                              "--one-device",
                              dag.buffers[each.second].name));
  return {};
}

} // namespace

Result<void> checkAlike(const planner::Dag &dag, uint32_t devicesPerMachine) {
  MGPU_TRY(checkHost(dag));
  std::set<std::vector<int32_t>> seen;
  for (const planner::DagNode &node : dag.nodes) {
    std::vector<int32_t> devices;
    for (DeviceId device : node.devices)
      devices.push_back(device.value);
    if (!isCollective(node) || !seen.insert(devices).second)
      continue;
    if (!isAlike(node.devices, dag.numDevices, std::max(devicesPerMachine, 1u)))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' at {}: its groups of {} devices lie on "
                              "other numbers of machines, so that one device "
                              "does not stand for all: plan without "
                              "--one-device",
                              node.name, node.location, devices.size()));
  }
  return {};
}

} // namespace mgpu::pipeline
