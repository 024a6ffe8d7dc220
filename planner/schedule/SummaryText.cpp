// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::planner {

static constexpr size_t mostExposed = 3;

/// Says which transfers on the devices are not hidden behind kernels, and why.
static std::string exposedText(const Plan &plan, const Dag &dag,
                               const PlanSummary &summary) {
  size_t worst = 0;
  for (size_t d = 0; d < summary.devices.size(); ++d)
    if (summary.devices[d].exposedUs > summary.devices[worst].exposedUs)
      worst = d;
  if (summary.devices.empty() || summary.devices[worst].exposedUs <= 0)
    return "exposed    nothing: all communication hides behind kernels\n";
  const DeviceTimes &times = summary.devices[worst];
  std::string out = fmt::format(
      "exposed    {} us of communication on device {}, beside {} us of "
      "kernels\n",
      plan.usText(times.exposedUs), worst, plan.usText(times.kernelUs));
  for (const ExposedCollective &one :
       exposedCollectives(plan, dag, mostExposed)) {
    const DagNode &node = dag.node(one.node);
    out += fmt::format("           {} us of {} \"{}\"{}: {}: {}; would "
                       "help: {}\n",
                       plan.usText(one.exposedUs), one.node.value, node.name,
                       node.location.empty() ? "" : " at " + node.location,
                       toString(one.reason), one.why, one.change);
  }
  return out;
}

static std::string memoryText(const Plan &plan, const Dag &dag) {
  std::vector<uint64_t> buffers(dag.numDevices, 0);
  for (const Buffer &buffer : dag.buffers)
    if (isInArena(buffer))
      buffers[size_t(buffer.device.value)] += buffer.sizeBytes;
  // Devices that are alike share a line.
  std::string out;
  for (size_t d = 0; d < plan.arenaBytes.size();) {
    size_t end = d + 1;
    while (end < plan.arenaBytes.size() &&
           plan.arenaBytes[end] == plan.arenaBytes[d] &&
           buffers[end] == buffers[d])
      ++end;
    out += fmt::format(
        "{:<11}{}: {} bytes for {} bytes of buffers\n", d ? "" : "memory",
        end == d + 1 ? fmt::format("device {}", d)
                     : fmt::format("each of devices {} to {}", d, end - 1),
        plan.arenaBytes[d] + dag.residentBytes, buffers[d] + dag.residentBytes);
    d = end;
  }
  return out;
}

std::string summaryText(const Plan &plan, const Dag &dag) {
  const PlanSummary summary = summarize(plan, dag);
  std::string out = fmt::format(
      "plan       {} on {}, at most {} each, by {}\n",
      counted(plan.steps.size(), "node"), counted(plan.numDevices, "device"),
      counted(plan.streamsPerDevice, "stream"), plan.scheduler);
  if (!plan.transforms.empty())
    out +=
        fmt::format("           after {}\n", fmt::join(plan.transforms, ", "));
  out += plan.verdictLine() + "\n";
  if (const std::string once = plan.onceLine(); !once.empty())
    out += fmt::format("once       {}\n", once);
  out += fmt::format("serial     {} us, one node after the other\n",
                     plan.usText(summary.serialMakespanUs));
  if (dag.loop.trips > 1)
    out +=
        fmt::format("loop       {} is rolled: of its {} trips the steps show "
                    "one\n",
                    dag.loop.location, dag.loop.trips);
  return out + exposedText(plan, dag, summary) + memoryText(plan, dag);
}

std::string stepsText(const Plan &plan, const Dag &dag) {
  std::string out =
      fmt::format("{:>12}  {:>12}  {:<12}  {:<32}  {:<16}  {}\n", "start (us)",
                  "takes (us)", "streams", "node", "waits for", "source");
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep &step = plan.steps[s];
    out += partTitle(plan, dag, s);
    std::vector<std::string> streams;
    for (PlanStream stream : step.streams)
      streams.push_back(
          stream.device.isHost()
              ? fmt::format("host.{}", stream.stream.value)
              : fmt::format("{}.{}", stream.device.value, stream.stream.value));
    std::vector<uint32_t> waits;
    for (NodeId wait : step.waits)
      waits.push_back(wait.value);
    const DagNode &node = dag.node(step.node);
    out += fmt::format(
        "{:>12.3f}  {:>12.3f}  {:<12}  {:<32}  {:<16}  {}\n", step.startUs,
        step.durationUs, fmt::format("{}", fmt::join(streams, " ")),
        fmt::format("{} \"{}\"", step.node.value, node.name),
        waits.empty() ? "-" : fmt::format("{}", fmt::join(waits, " ")),
        node.location.empty() ? "-" : node.location);
  }
  return out;
}

} // namespace mgpu::planner
