// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/StepParts.h"

#include "planner/dag/PlanPart.h"
#include "planner/schedule/Simulate.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>

namespace mgpu::planner {

namespace {

struct Part {
  size_t nodes = 0;
  double us = 0, rooflineUs = 0;
};

/// A step of the replay, as one of a device's.
struct WorkStep {
  const PlanStep *step = nullptr;
  double times = 1; ///< in a replay: the trips of a rolled loop
  double us() const { return times * step->durationUs; }
};

/// The time of a kernel's bytes and operations at the data sheet's rates.
struct Roofline {
  double memoryUs = 0, flopsUs = 0;
  double us() const { return std::max(memoryUs, flopsUs); }
};

Roofline rooflineOf(const Dag &dag, const DagNode &node,
                    const device::Topology::Device &device) {
  auto *call = std::get_if<KernelCall>(&node.work);
  const bool isProduct =
      node.isMatmul || (call && dag.kernels[call->kernel.value].product());
  return {double(node.bytesRead + node.bytesWritten) /
              (device.memoryBytesPerSecond / 1e6),
          node.flops /
              ((isProduct ? device.bf16FlopsPerSecond : device.flopsPerSecond) /
               1e6)};
}

/// Time of each kernel that is its launch, and that its first loads take.
double startUs(const device::Topology &topology) {
  double us = topology.calibration ? topology.calibration->launchUs : 0;
  for (const char *name : {"launch_us", "start_us"})
    if (const auto *rate = topology.rate(name))
      us += rate->value;
  return us;
}

/// The steps of the replay in which `device` takes part.
std::vector<WorkStep> stepsOf(const Plan &plan, const Dag &dag,
                              DeviceId device) {
  std::vector<WorkStep> out;
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    if (const double times = timesInReplay(dag, node.phase);
        times > 0 && std::ranges::count(node.devices, device) > 0)
      out.push_back({&step, times});
  }
  return out;
}

/// Microseconds of a replay in which at least one of the steps runs. Steps of
/// different phases never overlap.
double busyUs(std::vector<WorkStep> steps, const Dag &dag) {
  auto key = [&dag](const WorkStep &work) {
    return std::pair(dag.node(work.step->node).phase, work.step->startUs);
  };
  std::ranges::sort(steps, {}, key);
  double us = 0, endUs = 0;
  std::optional<Phase> phase;
  for (const WorkStep &work : steps) {
    const auto [itsPhase, start] = key(work);
    endUs = phase == itsPhase ? std::max(endUs, start) : start;
    phase = itsPhase;
    const double end = start + work.step->durationUs;
    us += work.times * std::max(0.0, end - endUs);
    endUs = std::max(endUs, end);
  }
  return us;
}

/// The device whose replay works longest.
DeviceId busiest(const Plan &plan, const Dag &dag) {
  std::map<DeviceId, double> us;
  for (const PlanStep &step : plan.steps)
    for (DeviceId device : dag.node(step.node).devices)
      us[device] +=
          timesInReplay(dag, dag.node(step.node).phase) * step.durationUs;
  auto most = std::ranges::max_element(
      us, {}, [](const auto &each) { return each.second; });
  return most == us.end() ? DeviceId{0} : most->first;
}

std::string partName(const Dag &dag, const Machine &machine, NodeId id,
                     double launchUs, Part &part) {
  const DagNode &node = dag.node(id);
  const Estimate estimate = machine.estimate(dag, id);
  switch (workClass(node)) {
  case WorkClass::Collective: {
    const auto asked = machine.asked(dag, node);
    return asked ? fmt::format("{} of {}, {}", toString(asked->kind),
                               asked->ranks, estimate.how)
                 : "collectives";
  }
  case WorkClass::Copy:
    return "copies, " + estimate.how;
  case WorkClass::Kernel:
    break;
  }
  const Roofline roofline = rooflineOf(dag, node, machine.topology().device);
  part.rooflineUs = roofline.us();
  if (estimate.us < 2 * launchUs)
    return "kernels, mostly their launch";
  return roofline.flopsUs > roofline.memoryUs ? "kernels, bound by arithmetic"
                                              : "kernels, bound by memory";
}

std::string rangeText(const Plan &plan, const Dag &dag,
                      const Machine &machine) {
  std::vector<std::string_view> names;
  for (const device::Topology::Rate &rate : machine.topology().rates)
    if (rate.isRange())
      names.push_back(rate.name);
  if (names.empty())
    return "";
  auto at = [&](bool slow) {
    return retimedUs(plan, dag, machine.on(machine.topology().atEnd(slow)));
  };
  return fmt::format("makespan with contention from {:.6g} to {:.6g} us by the "
                     "ranges of {}\n",
                     at(false), at(true), fmt::join(names, ", "));
}

} // namespace

double retimedUs(const Plan &plan, const Dag &dag, const Machine &machine) {
  Plan timed = plan;
  for (PlanStep &step : timed.steps)
    step.durationUs = machine.durationUs(dag, step.node);
  return simulate(timed, dag, contentionOf(machine.topology())).makespanUs;
}

std::string stepPartsText(const Plan &plan, const Dag &dag,
                          const Machine &machine) {
  const DeviceId device = busiest(plan, dag);
  const double launchUs = startUs(machine.topology());
  std::map<std::string, Part> parts;
  double launchesUs = 0;
  const std::vector<WorkStep> steps = stepsOf(plan, dag, device);
  for (const WorkStep &work : steps) {
    const DagNode &node = dag.node(work.step->node);
    Part one;
    Part &part = parts[partName(dag, machine, work.step->node, launchUs, one)];
    part.nodes += 1;
    part.us += work.us();
    part.rooflineUs += work.times * one.rooflineUs;
    if (workClass(node) == WorkClass::Kernel && !node.durationUs)
      launchesUs += work.times * std::min(launchUs, work.step->durationUs);
  }
  std::string out =
      fmt::format("a replay is made of, on device {}:\n", device.value);
  auto line = [&](double us, std::string_view words) {
    out += fmt::format("  {:>12.3f} us  {}\n", us, words);
  };
  for (const auto &[name, part] : parts)
    line(part.us, fmt::format("{}: {}{}", name, counted(part.nodes, "node"),
                              part.rooflineUs > 0
                                  ? fmt::format(", {:.0f} % of the roofline",
                                                100 * part.rooflineUs / part.us)
                                  : ""));
  line(launchesUs, "of the kernels' time: launches and first loads");
  line(std::max(0.0, plan.makespanUs - busyUs(steps, dag)),
       "no work of the device");
  if (const auto *host = machine.topology().rate("replay_us"))
    line(host->value, "the host, from one replay to the next");
  return out + rangeText(plan, dag, machine);
}

} // namespace mgpu::planner
