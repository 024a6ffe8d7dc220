// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/WhatIf.h"

#include "support/Spelling.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

static tl::unexpected<Error> wrong(const std::string &change,
                                   std::string_view what) {
  return fail(ErrorKind::Usage,
              fmt::format("--what-if {}: {}; give link=2x, link.nvlink=2x, "
                          "nic=2x, host_link=2x, memory=2x, flops=2x or "
                          "op:NAME=0.5x",
                          change, what));
}

static Result<void> scaleOps(const std::string &change, OpFactor op,
                             const Dag &planned, WhatIf &out) {
  bool found = false;
  for (DagNode &node : out.dag.nodes)
    if (matchesPattern(op.pattern, node.name)) {
      scaleTime(node, op.factor);
      found = true;
    }
  if (found)
    return {};
  for (const DagNode &node : planned.nodes)
    found = found || matchesPattern(op.pattern, node.name);
  if (!found)
    return wrong(change, fmt::format("no node of the program or of its plan is "
                                     "called \"{}\" (--explain lists them)",
                                     op.pattern));
  out.made.push_back(std::move(op));
  return {};
}

/// The part of a time that grows with the bytes, `factor` times as fast;
/// `startUs` is that of the fewest bytes.
static double scaledUs(double us, double startUs, double factor) {
  return startUs + std::max(us - startUs, 0.0) / factor;
}

/// Scales measured times by the rate that is changed: collectives and pairs the
/// link, copies the host's link, large kernels memory, and other kernels and
/// products arithmetic.
static void scaleMeasured(device::Topology::Calibration &measured,
                          std::string_view name, double factor) {
  std::map<std::pair<std::string, uint32_t>, double> startUs;
  for (const auto &row : measured.collectives) {
    double &least =
        startUs.try_emplace({row.op, row.ranks}, row.us).first->second;
    least = std::min(least, row.us);
  }
  for (auto &row : measured.collectives)
    if (name == "link")
      row.us = scaledUs(row.us, startUs[{row.op, row.ranks}], factor);
  for (auto &pair : measured.pairs)
    pair.bytesPerSecond *= name == "link" ? factor : 1;
  for (auto &row : measured.matmuls)
    row.us /= name == "flops" ? factor : 1;
  for (auto &row : measured.host) {
    const bool isCopy = row.counts.contains("copy");
    if (name == "host_link" && isCopy)
      row.us = scaledUs(row.us, measured.copyLatencyUs, factor);
    else if (!isCopy &&
             name == (row.bytes > hostNearBytes ? "memory" : "flops"))
      row.us /= factor;
  }
}

static Result<void> applyOne(const std::string &change, const Dag &planned,
                             WhatIf &out) {
  device::Topology &topology = out.topology;
  size_t equals = change.rfind('=');
  if (equals == std::string::npos || !change.ends_with('x'))
    return wrong(change, "it is not a NAME=FACTORx");
  std::string name = change.substr(0, equals);
  const char *begin = change.data() + equals + 1,
             *end = change.data() + change.size() - 1;
  double factor = 0;
  auto [stop, error] = std::from_chars(begin, end, factor);
  if (error != std::errc() || stop != end || !(factor > 0) || !(factor < 1e9))
    return wrong(change, "the factor must be a number above 0 and below 1e9");
  if (name.starts_with("op:"))
    return scaleOps(change, {name.substr(3), factor}, planned, out);
  using device::LinkKind;
  const LinkKind kind = topology.link.kind;
  if (name == "link" || (kind == LinkKind::NvLink && name == "link.nvlink") ||
      (kind == LinkKind::Pcie && name == "link.pcie"))
    topology.link.bytesPerSecond *= factor;
  else if (name == "link.nvlink" || name == "link.pcie")
    return wrong(change, fmt::format("the devices of {} are joined by {}",
                                     topology.name,
                                     kind == LinkKind::NvLink ? "NVLink"
                                     : kind == LinkKind::Pcie ? "PCIe"
                                                              : "one memory"));
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
  if (topology.calibration)
    scaleMeasured(*topology.calibration,
                  name.starts_with("link.") ? "link" : name, factor);
  return {};
}

/// Frozen durations, by the ratio of the estimates after and before.
static void carryOver(const Machine &before, WhatIf &out) {
  Machine after = before.on(out.topology);
  Dag bare = out.dag;
  for (DagNode &node : bare.nodes)
    node.durationUs.reset();
  for (uint32_t i = 0; i < out.dag.nodes.size(); ++i) {
    std::optional<double> &frozen = out.dag.nodes[i].durationUs;
    if (!frozen)
      continue;
    double was = before.durationUs(bare, NodeId{i}),
           is = after.durationUs(bare, NodeId{i});
    if (was <= 0 || is == was)
      continue;
    *frozen *= is / was;
    ++out.scaled;
  }
}

Result<WhatIf> applyWhatIf(std::span<const std::string> changes,
                           const Machine &machine, const Dag &program,
                           const Dag &planned) {
  WhatIf out{machine.topology(), program, {}};
  bool changesMachine = false;
  for (const std::string &change : changes) {
    MGPU_TRY(applyOne(change, planned, out));
    changesMachine |= !change.starts_with("op:");
  }
  if (changesMachine)
    carryOver(machine, out);
  return out;
}

} // namespace mgpu::planner
