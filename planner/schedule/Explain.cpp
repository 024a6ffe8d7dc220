// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/StepParts.h"
#include "planner/schedule/TargetSearch.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/list/Schedulers.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

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

namespace {
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

} // namespace mgpu::planner
