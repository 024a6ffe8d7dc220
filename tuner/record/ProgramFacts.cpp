// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/ProgramFacts.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using namespace planner;
using nlohmann::json;

/// More than fit a picture; each takes about a hundred bytes in the database.
static constexpr size_t mostSteps = 5000;

ProgramFacts describeProgram(const Dag &dag, SubjectName subject) {
  ProgramFacts facts;
  facts.subject = std::move(subject);
  facts.devices = dag.numDevices;
  facts.loopTrips = dag.loop.trips;
  for (const KernelSpec &kernel : dag.kernels) {
    KernelFacts &each = facts.kernels.emplace_back();
    each.name = kernel.name;
    each.source = kernel.location;
  }
  for (const DagNode &node : dag.nodes) {
    auto *call = std::get_if<KernelCall>(&node.work);
    // Nodes of other phases are not timed.
    if (!call || node.phase != Phase::Replay)
      continue;
    KernelFacts &kernel = facts.kernels[call->kernel.value];
    const uint64_t times = dag.loop.trips;
    const double bytes = double(node.bytesRead) + double(node.bytesWritten);
    kernel.launches += times;
    kernel.flops += double(times) * node.flops;
    kernel.bytes += double(times) * bytes;
    kernel.bytesTouched = std::max(kernel.bytesTouched, bytes);
  }
  return facts;
}

Timeline describeReplay(const Dag &dag, const Plan &plan,
                        std::span<const capture::NodeSpan> spans) {
  Timeline timeline;
  timeline.isMeasured = !spans.empty();
  timeline.scheduler = plan.scheduler;
  timeline.model = plan.model;
  timeline.plan = plan.verdictLine();
  std::vector<const capture::NodeSpan *> spanOf(dag.nodes.size());
  for (const capture::NodeSpan &span : spans)
    if (span.node.value < spanOf.size() && std::isfinite(span.startUs) &&
        std::isfinite(span.endUs) && span.startUs <= span.endUs)
      spanOf[span.node.value] = &span;
  double first = INFINITY, firstPlanned = INFINITY;
  bool isWhole = true;
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    isWhole &= partOf(node.phase) != PlanPart::Replay ||
               (node.phase == Phase::Replay && dag.loop.trips == 1);
    const capture::NodeSpan *span = spanOf[step.node.value];
    if (node.phase != Phase::Replay || (timeline.isMeasured && !span))
      continue;
    if (timeline.steps.size() == mostSteps) {
      ++timeline.left;
      continue;
    }
    TimelineStep &each = timeline.steps.emplace_back();
    each.node = step.node.value;
    each.name = node.name;
    each.source = node.location;
    each.kind = workClass(node);
    each.streams = step.streams;
    each.startUs = span ? span->startUs : step.startUs;
    each.endUs = span ? span->endUs : step.startUs + step.durationUs;
    each.plannedStartUs = step.startUs;
    each.plannedEndUs = step.startUs + step.durationUs;
    first = std::min(first, each.startUs);
    firstPlanned = std::min(firstPlanned, each.plannedStartUs);
  }
  timeline.hasPlanned = true;
  if (isWhole)
    timeline.boundUs = plan.lowerBoundUs;
  for (TimelineStep &step : timeline.steps) { // a loop's prologue came before
    step.startUs -= first;
    step.endUs -= first;
    step.plannedStartUs -= firstPlanned;
    step.plannedEndUs -= firstPlanned;
  }
  return timeline;
}

static json toJson(const Timeline &timeline) {
  json steps = json::array();
  for (const TimelineStep &step : timeline.steps) {
    json streams = json::array();
    for (PlanStream stream : step.streams)
      streams.push_back(
          json::array({stream.device.value, stream.stream.value}));
    steps.push_back({step.node, step.name, step.source, int(step.kind), streams,
                     step.startUs, step.endUs, step.plannedStartUs,
                     step.plannedEndUs});
  }
  json out{{"measured", timeline.isMeasured}, {"scheduler", timeline.scheduler},
           {"model", timeline.model},         {"plan", timeline.plan},
           {"left", timeline.left},           {"steps", std::move(steps)}};
  if (timeline.hasPlanned)
    out["bound_us"] = timeline.boundUs;
  return out;
}

static Timeline timelineFromJson(const json &in) {
  Timeline timeline;
  in.at("measured").get_to(timeline.isMeasured);
  in.at("scheduler").get_to(timeline.scheduler);
  in.at("model").get_to(timeline.model);
  in.at("left").get_to(timeline.left);
  timeline.plan = in.value("plan", "");
  timeline.boundUs = in.value("bound_us", 0.0);
  timeline.hasPlanned = in.contains("bound_us");
  for (const json &from : in.at("steps")) {
    TimelineStep &step = timeline.steps.emplace_back();
    from.at(0).get_to(step.node);
    from.at(1).get_to(step.name);
    from.at(2).get_to(step.source);
    step.kind = WorkClass(std::clamp(from.at(3).get<int>(), 0, 2));
    for (const json &stream : from.at(4))
      step.streams.push_back({DeviceId{stream.at(0).get<int32_t>()},
                              {stream.at(1).get<uint32_t>()}});
    from.at(5).get_to(step.startUs);
    from.at(6).get_to(step.endUs);
    if (timeline.hasPlanned) {
      from.at(7).get_to(step.plannedStartUs);
      from.at(8).get_to(step.plannedEndUs);
    }
  }
  return timeline;
}

json toJson(const ProgramFacts &facts) {
  json kernels = json::array();
  for (const KernelFacts &kernel : facts.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"source", kernel.source},
                       {"key", kernel.key},
                       {"launches", kernel.launches},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"bytes_touched", kernel.bytesTouched},
                       {"default_us", kernel.defaultUs},
                       {"tuned_us", kernel.tunedUs}});
  json roofs = json::array();
  for (const bench::Peaks::Roof &roof : facts.peaks.memory)
    roofs.push_back(json::array({roof.bytes, roof.bytesPerUs}));
  json out{{"file", facts.subject.file},
           {"entry", facts.subject.entry},
           {"arguments", facts.subject.arguments},
           {"devices", facts.devices},
           {"loop_trips", facts.loopTrips},
           {"kernels", std::move(kernels)},
           {"peak_flops_per_us", facts.peaks.flopsPerUs},
           {"peak_bytes_per_us", std::move(roofs)}};
  if (facts.before)
    out["before"] = toJson(*facts.before);
  if (facts.after)
    out["after"] = toJson(*facts.after);
  return out;
}

std::optional<ProgramFacts> factsFromJson(const json &in) {
  ProgramFacts facts;
  try {
    in.at("file").get_to(facts.subject.file);
    in.at("entry").get_to(facts.subject.entry);
    in.at("arguments").get_to(facts.subject.arguments);
    in.at("devices").get_to(facts.devices);
    in.at("loop_trips").get_to(facts.loopTrips);
    for (const json &from : in.at("kernels")) {
      KernelFacts &kernel = facts.kernels.emplace_back();
      from.at("name").get_to(kernel.name);
      from.at("source").get_to(kernel.source);
      from.at("key").get_to(kernel.key);
      from.at("launches").get_to(kernel.launches);
      from.at("flops").get_to(kernel.flops);
      from.at("bytes").get_to(kernel.bytes);
      from.at("bytes_touched").get_to(kernel.bytesTouched);
      from.at("default_us").get_to(kernel.defaultUs);
      from.at("tuned_us").get_to(kernel.tunedUs);
    }
    in.at("peak_flops_per_us").get_to(facts.peaks.flopsPerUs);
    for (const json &roof : in.at("peak_bytes_per_us"))
      facts.peaks.memory.push_back(
          {roof.at(0).get<uint64_t>(), roof.at(1).get<double>()});
    if (auto at = in.find("before"); at != in.end())
      facts.before = timelineFromJson(*at);
    if (auto at = in.find("after"); at != in.end())
      facts.after = timelineFromJson(*at);
  } catch (const json::exception &) {
    return std::nullopt;
  }
  return facts;
}

} // namespace mgpu::tuner
