// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/TargetMachine.h"
#include "planner/dag/PlanPart.h"
#include "planner/plan/ArenaLayout.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/TargetSearch.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace mgpu::planner {

namespace {

// Says of what a predicted replay is made, and how sure its time is.

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

/// The makespan of the steps in the plan's order with the times of `machine`,
/// microseconds, with contention.
double retimedUs(const Plan &plan, const Dag &dag, const Machine &machine) {
  Plan timed = plan;
  for (PlanStep &step : timed.steps)
    step.durationUs = machine.durationUs(dag, step.node);
  return simulate(timed, dag, contentionOf(machine.topology())).makespanUs;
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

/// Lines for people, of the device that works longest: its kernels by what
/// bounds them, with their share of the roofline of the data sheet (bytes and
/// operations at the rates of the topology, over the time); collectives by how
/// they are done; copies; what of the kernels' time is launches and first
/// loads; when nothing runs; and the host's part. Then the makespan with all
/// rates of the machine at either end of their ranges, where one is a range.
/// `plan` must have passed verify(); the machine is not the host.
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
using Spans = std::vector<std::pair<double, double>>;

/// Sorts and joins spans that touch.
void unite(Spans &spans) {
  std::sort(spans.begin(), spans.end());
  Spans joined;
  for (auto span : spans)
    if (!joined.empty() && span.first <= joined.back().second)
      joined.back().second = std::max(joined.back().second, span.second);
    else
      joined.push_back(span);
  spans = std::move(joined);
}
double length(const Spans &spans) {
  double sum = 0;
  for (auto [begin, end] : spans)
    sum += end - begin;
  return sum;
}
/// The length that `a` and `b`, both united, have in common.
double common(const Spans &a, const Spans &b) {
  double sum = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[k].second) -
                             std::max(a[i].first, b[k].first));
    a[i].second < b[k].second ? ++i : ++k;
  }
  return sum;
}
} // namespace

static std::string timesOf(const TransformGain &gain) {
  if (gain.beforeUs == 0)
    return fmt::format("makespan {:.3f} us where nothing fitted the memory, "
                       "with contention {:.3f} us",
                       gain.afterUs, gain.contendedAfterUs);
  return fmt::format("makespan {:.3f} -> {:.3f} us, with contention {:.3f} -> "
                     "{:.3f} us",
                     gain.beforeUs, gain.afterUs, gain.contendedBeforeUs,
                     gain.contendedAfterUs);
}

std::string explainModel(const TargetPlan &plan, const Dag &dag,
                         const Machine &given) {
  std::string out;
  if (!given.isHost())
    out = fmt::format("with contention: makespan {:.3f} us, one node after the "
                      "other {:.3f} us\n",
                      plan.contendedUs, plan.serialUs);
  if (plan.classes > 0)
    out += fmt::format("{} of {} devices were planned, each for those that do "
                       "as it does\n",
                       plan.classes, dag.numDevices);
  for (const TransformGain &gain : plan.gains) {
    out += fmt::format("transform {}: ", toString(gain.transform));
    if (gain.changes == 0)
      out += "nothing to change\n";
    else if (gain.afterUs == 0)
      out += fmt::format("{} changes, does not fit the memory\n", gain.changes);
    else
      out += fmt::format("{} changes, {}, {}\n", gain.changes, timesOf(gain),
                         gain.isKept ? "kept" : "not kept");
    for (const std::string &line : gain.left)
      out += "  " + line + "\n";
  }
  const Machine machine =
      plan.algorithms.empty() ? given.withoutAlgorithms() : given;
  out += explainAlgorithms(plan.algorithms, dag, machine);
  if (!machine.isHost())
    out += stepPartsText(plan.plan, dag, machine);
  double sums[allOrigins.size()] = {}, total = 0;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    Estimate estimate = machine.estimate(dag, NodeId{i});
    if (i < plan.isScaled.size() && plan.isScaled[i])
      estimate.origin = Origin::Assumed;
    sums[size_t(estimate.origin)] += estimate.us;
    total += estimate.us;
  }
  auto share = [&](Origin origin) {
    return total > 0 ? 100 * sums[size_t(origin)] / total : 0;
  };
  if (std::count(plan.isScaled.begin(), plan.isScaled.end(), true) > 0)
    out += fmt::format(
        "{} nodes that transforms made: {}\n",
        std::count(plan.isScaled.begin(), plan.isScaled.end(), true),
        scaledWords);
  out += fmt::format("durations of {}: {:.0f} % measured or frozen, {:.0f} % "
                     "published, {:.0f} % assumed\n",
                     machine.name(),
                     share(Origin::Measured) + share(Origin::Given),
                     share(Origin::Published), share(Origin::Assumed));
  std::vector<Coefficient> list = machine.coefficients();
  contentionOf(machine.topology(), &list);
  for (const Coefficient &c : list)
    out += fmt::format("  {} = {:.6g} {}({}: {})\n", c.name, c.value,
                       c.unit.empty() ? "" : c.unit + " ", toString(c.origin),
                       c.source);
  return out;
}

/// Adds what the devices do in one phase of a replay, as often as that runs it.
static void addTimes(PlanSummary &summary, const Plan &plan, const Dag &dag,
                     Phase phase) {
  const double times = timesInReplay(dag, phase);
  std::vector<Spans> spans(numResources(dag));
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    if (node.phase != phase)
      continue;
    summary.serialMakespanUs += times * step.durationUs;
    summary.waits += step.waits.size();
    for (DeviceId device : streamDevices(node))
      spans[resourceIndex(device, workClass(node))].emplace_back(
          step.startUs, step.startUs + step.durationUs);
  }
  for (Spans &each : spans)
    unite(each);
  for (uint32_t d = 0; d < dag.numDevices; ++d) {
    auto of = [&](WorkClass work) -> const Spans & {
      return spans[resourceIndex(DeviceId{int32_t(d)}, work)];
    };
    DeviceTimes &sums = summary.devices[d];
    sums.kernelUs += times * length(of(WorkClass::Kernel));
    sums.collectiveUs += times * length(of(WorkClass::Collective));
    sums.copyUs += times * length(of(WorkClass::Copy));
    Spans moving = of(WorkClass::Collective);
    moving.insert(moving.end(), of(WorkClass::Copy).begin(),
                  of(WorkClass::Copy).end());
    unite(moving);
    sums.exposedUs +=
        times * (length(moving) - common(moving, of(WorkClass::Kernel)));
  }
}

PlanSummary summarize(const Plan &plan, const Dag &dag) {
  PlanSummary summary;
  summary.makespanUs = plan.makespanUs;
  summary.lowerBoundUs = plan.lowerBoundUs;
  if (plan.lowerBoundUs > 0)
    summary.ratio = plan.makespanUs / plan.lowerBoundUs;
  summary.devices.resize(dag.numDevices);
  for (Phase phase : allPhases)
    addTimes(summary, plan, dag, phase);
  for (const Buffer &buffer : dag.buffers)
    if (isInArena(buffer))
      summary.bufferBytes += buffer.sizeBytes;
  std::vector<uint64_t> bounds = layoutArena(plan, dag).lowerBoundBytes;
  for (size_t device = 0; device < plan.arenaBytes.size(); ++device) {
    summary.arenaBytes += plan.arenaBytes[device];
    summary.arenaBoundBytes += bounds[device];
    if (bounds[device] > 0)
      summary.arenaRatio =
          std::max(summary.arenaRatio,
                   double(plan.arenaBytes[device]) / double(bounds[device]));
  }
  return summary;
}

static std::string reasonText(const StartReason &reason, const Dag &dag) {
  if (reason.kind == StartReason::Immediately)
    return "nothing to wait for";
  const char *why = "";
  switch (reason.kind) {
  case StartReason::Immediately:
    break;
  case StartReason::Dependence:
    why = "depends on";
    break;
  case StartReason::Order:
    why = "ordered after";
    break;
  case StartReason::Stream:
    why = "stream busy with";
    break;
  case StartReason::Resource:
    why = "device busy with";
    break;
  case StartReason::Phase:
    why = "phase before ends with";
    break;
  }
  return fmt::format("{} {} \"{}\"", why, reason.node.value,
                     dag.node(reason.node).name);
}

std::string partTitle(const Plan &plan, const Dag &dag, size_t step) {
  auto part = [&](size_t s) {
    return partOf(dag.node(plan.steps[s].node).phase);
  };
  if (plan.steps.empty() ||
      (part(0) == PlanPart::Replay &&
       part(plan.steps.size() - 1) == PlanPart::Replay) ||
      (step > 0 && part(step) == part(step - 1)))
    return {};
  return fmt::format("{}:\n", toString(part(step)));
}

static std::string locationText(const DagNode &node) {
  return node.location.empty() ? "" : fmt::format(" ({})", node.location);
}

/// By step, for other programs.
std::vector<std::string> reasonsOf(const Plan &plan, const Dag &dag) {
  Plan replayed = plan;
  std::vector<std::string> words;
  for (const StartReason &reason : predictTimes(replayed, dag))
    words.push_back(reasonText(reason, dag));
  return words;
}

std::string explain(const Plan &plan, const Dag &dag) {
  Plan replayed = plan;
  std::vector<StartReason> reasons = predictTimes(replayed, dag);
  std::string out = fmt::format("plan by {}, durations from {}\n",
                                plan.scheduler, plan.model);
  out += fmt::format("{:>12} us  +{:<12} streams  node: what it starts after "
                     "(where it stands in the source)\n",
                     "start", "takes");
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep &step = replayed.steps[s];
    out += partTitle(plan, dag, s);
    std::string streams;
    for (PlanStream stream : step.streams)
      streams +=
          stream.device.isHost()
              ? fmt::format(" host.{}", stream.stream.value)
              : fmt::format(" {}.{}", stream.device.value, stream.stream.value);
    std::string by =
        step.algorithm
            ? fmt::format(" by {} {}", toString(step.algorithm->shape),
                          toString(step.algorithm->protocol))
            : "";
    out += fmt::format(
        "{:>12.3f} us  +{:<12.3f}{}  {} \"{}\"{}: {}{}\n", step.startUs,
        step.durationUs, streams, step.node.value, dag.node(step.node).name, by,
        reasonText(reasons[s], dag), locationText(dag.node(step.node)));
  }
  PlanSummary summary = summarize(replayed, dag);
  for (const KernelSpec &kernel : dag.kernels)
    if (kernel.location.find(" + ") != std::string::npos)
      out +=
          fmt::format("fused: kernel {} is {}\n", kernel.name, kernel.location);
  if (dag.loop.trips > 1)
    out += fmt::format("the loop at {} is rolled: of its {} trips the steps "
                       "show one\n",
                       dag.loop.location, dag.loop.trips);
  if (const std::string once = plan.onceLine(); !once.empty())
    out += once + "\n";
  const std::string verdict = plan.verdict();
  out += fmt::format(
      "makespan {} us, lower bound {} us, ratio {:.3f}{}{}\n"
      "one node after the other {} us, {} cross-stream waits\n"
      "arenas {} bytes for {} bytes of device buffers; no layout "
      "takes less than {} (ratio {:.3f} at most)\n",
      plan.usText(summary.makespanUs), plan.usText(summary.lowerBoundUs),
      summary.ratio, verdict.empty() ? "" : ": ", verdict,
      plan.usText(summary.serialMakespanUs), summary.waits, summary.arenaBytes,
      summary.bufferBytes, summary.arenaBoundBytes, summary.arenaRatio);
  for (const std::string &line : originLines(plan, dag))
    out += "durations of " + line + "\n";
  for (size_t d = 0; d < summary.devices.size(); ++d) {
    const DeviceTimes &times = summary.devices[d];
    if (times.kernelUs + times.collectiveUs + times.copyUs > 0)
      out += fmt::format("device {}: kernels {:.3f} us, collectives {:.3f} us, "
                         "copies {:.3f} us, exposed communication {:.3f} us\n",
                         d, times.kernelUs, times.collectiveUs, times.copyUs,
                         times.exposedUs);
  }
  for (const ExposedCollective &one : exposedCollectives(plan, dag))
    out += fmt::format(
        "exposed {:.3f} us: {} \"{}\" on device {}: {}: {}; would "
        "help: {}\n",
        one.exposedUs, one.node.value, dag.node(one.node).name,
        one.device.value, toString(one.reason), one.why, one.change);
  return out;
}

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
