// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/WhatIf.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::planner {

static tl::unexpected<Error> wrong(const std::string &change,
                                   std::string_view what) {
  return fail(ErrorKind::Usage,
              fmt::format("--what-if {}: {}; give link=2x, link.nvlink=2x, "
                          "nic=2x, host_link=2x, memory=2x, flops=2x or "
                          "op:NAME=0.5x",
                          change, what));
}

static Result<void> scaleOps(const std::string &change, std::string name,
                             double factor, const device::Topology &topology,
                             Dag &dag) {
  bool isPrefix = name.ends_with('*');
  if (isPrefix)
    name.pop_back();
  TopologyEstimator machine(topology);
  uint32_t found = 0;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    DagNode &node = dag.nodes[i];
    if (isPrefix ? !node.name.starts_with(name) : node.name != name)
      continue;
    node.durationUs = machine.durationUs(dag, NodeId{i}) * factor;
    ++found;
  }
  if (found == 0)
    return wrong(change, fmt::format("no node is called \"{}\"", name));
  return {};
}

Result<void> applyWhatIf(const std::string &change, device::Topology &topology,
                         Dag &dag) {
  size_t equals = change.rfind('=');
  if (equals == std::string::npos || !change.ends_with('x'))
    return wrong(change, "it is no NAME=FACTORx");
  std::string name = change.substr(0, equals);
  const char *begin = change.data() + equals + 1,
             *end = change.data() + change.size() - 1;
  double factor = 0;
  auto [stop, error] = std::from_chars(begin, end, factor);
  if (error != std::errc() || stop != end || !(factor > 0) || !(factor < 1e9))
    return wrong(change, "the factor must be a number above 0");
  if (name.starts_with("op:"))
    return scaleOps(change, name.substr(3), factor, topology, dag);
  bool nvlink = topology.link.kind == device::LinkKind::NvLink;
  if (name == "link" || name == (nvlink ? "link.nvlink" : "link.pcie"))
    topology.link.bytesPerSecond *= factor;
  else if (name == "link.nvlink" || name == "link.pcie")
    return wrong(change,
                 fmt::format("the devices of {} are joined by {}",
                             topology.name, nvlink ? "NVLink" : "PCIe"));
  else if (name == "nic" && topology.nic)
    topology.nic->bytesPerSecond *= factor;
  else if (name == "nic")
    return wrong(change, fmt::format("{} has no NIC", topology.name));
  else if (name == "host_link")
    topology.hostLink.bytesPerSecond *= factor;
  else if (name == "memory")
    topology.device.memoryBytesPerSecond *= factor;
  else if (name == "flops") {
    topology.device.flopsPerSecond *= factor;
    topology.device.bf16FlopsPerSecond *= factor;
    topology.device.tf32FlopsPerSecond *= factor;
  } else
    return wrong(change, fmt::format("there is no \"{}\"", name));
  return {};
}

} // namespace mgpu::planner
