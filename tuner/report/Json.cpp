// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"

#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using nlohmann::ordered_json;

static ordered_json toJson(const Measured &measured) {
  return {{"us", measured.us},
          {"low_us", measured.lowUs},
          {"high_us", measured.highUs},
          {"samples", measured.samples}};
}

static ordered_json toJson(const std::optional<ReportTimeline> &given) {
  if (!given)
    return nullptr;
  const Timeline &timeline = given->timeline;
  ordered_json steps = ordered_json::array();
  for (const TimelineStep &step : timeline.steps) {
    ordered_json streams = ordered_json::array();
    for (planner::PlanStream stream : step.streams)
      streams.push_back(
          {{"device", stream.device.value}, {"stream", stream.stream.value}});
    steps.push_back({{"node", step.node},
                     {"name", step.name},
                     {"source", step.source},
                     {"kind", toString(step.kind)},
                     {"streams", std::move(streams)},
                     {"start_us", step.startUs},
                     {"end_us", step.endUs}});
    if (timeline.hasPlanned) {
      steps.back()["planned_start_us"] = step.plannedStartUs;
      steps.back()["planned_end_us"] = step.plannedEndUs;
    }
  }
  ordered_json exposed = ordered_json::array();
  for (const Exposed &each : given->exposed)
    exposed.push_back({{"step", each.step},
                       {"device", each.device},
                       {"start_us", each.startUs},
                       {"end_us", each.endUs}});
  return {{"measured", timeline.isMeasured},
          {"scheduler", timeline.scheduler},
          {"model", timeline.isMeasured ? "" : timeline.model},
          {"plan", timeline.plan},
          {"length_us", given->lengthUs},
          {"planned_us", timeline.hasPlanned ? ordered_json(given->plannedUs())
                                             : ordered_json()},
          {"bound_us", timeline.boundUs > 0 ? ordered_json(timeline.boundUs)
                                            : ordered_json()},
          {"exposed_us", given->exposedUs()},
          {"steps_left_out", timeline.left},
          {"steps", std::move(steps)},
          {"exposed", std::move(exposed)}};
}

static ordered_json toJson(const std::optional<ProfileFacts> &given) {
  if (!given)
    return nullptr;
  auto quartiles = [](const Quartiles &of) {
    return ordered_json{
        {"median_us", of.us}, {"p25_us", of.p25Us}, {"p75_us", of.p75Us}};
  };
  ordered_json nodes = ordered_json::array();
  for (const NodeProfile &node : given->nodes)
    nodes.push_back(ordered_json(toJson(node)));
  return {{"time_ms", given->timeMs},
          {"host", given->host},
          {"version", given->version},
          {"configuration", given->configuration},
          {"model", given->model},
          {"threads", given->threads},
          {"pinned_cpus", given->pinnedCpus},
          {"samples", given->samples},
          {"predicted_us", given->predictedUs},
          {"recomputed_us", given->recomputedUs},
          {"plan", given->plan},
          {"replay", quartiles(given->replay)},
          {"serial", quartiles(given->serial)},
          {"nodes", std::move(nodes)}};
}

static ordered_json toJson(const ReportTrial &given, const Report &report) {
  const db::Trial &trial = given.trial;
  return {{"kernel",
           given.kernel < 0
               ? ordered_json()
               : ordered_json(report.kernels[size_t(given.kernel)].facts.name)},
          {"configuration", trial.configuration},
          {"status", db::statusName(trial.status)},
          {"median_us", trial.medianUs},
          {"low_us", trial.lowUs},
          {"high_us", trial.highUs},
          {"samples", trial.samples},
          {"relative",
           given.relative ? ordered_json(given.relative) : ordered_json()},
          {"seconds", trial.seconds},
          {"spent_seconds", given.spentSeconds},
          {"time_ms", trial.provenance.timeMs},
          {"what", trial.sentence}};
}

static ordered_json toJson(const ReportKernel &kernel) {
  const bool known = kernel.boundUs > 0;
  return {{"name", kernel.facts.name},
          {"source", kernel.facts.source},
          {"launches", kernel.facts.launches},
          {"default_us", kernel.facts.defaultUs},
          {"tuned_us", kernel.facts.tunedUs ? ordered_json(kernel.facts.tunedUs)
                                            : ordered_json()},
          {"flops", kernel.facts.flops},
          {"bytes", kernel.facts.bytes},
          {"bound_us", known ? ordered_json(kernel.boundUs) : ordered_json()},
          {"bound",
           known ? ordered_json(kernel.isMemoryBound ? "memory" : "arithmetic")
                 : ordered_json()},
          {"share_of_peak",
           known ? ordered_json(kernel.shareOfPeak()) : ordered_json()},
          {"tried", kernel.tried},
          {"failed", kernel.failed},
          {"configuration", kernel.configuration}};
}

static ordered_json machineJson(const Report &report) {
  ordered_json environment = ordered_json::object();
  for (auto &[name, value] : report.environment)
    environment[name] = value;
  ordered_json roofs = ordered_json::array();
  for (const bench::Peaks::Roof &roof : report.peaks.memory)
    roofs.push_back({{"bytes", roof.bytes}, {"bytes_per_us", roof.bytesPerUs}});
  return {{"device", report.problem.device},
          {"architecture", report.problem.architecture},
          {"driver", report.problem.driver},
          {"policy", report.problem.policy},
          {"environment", std::move(environment)},
          {"peak_flops_per_us", report.peaks.isKnown()
                                    ? ordered_json(report.peaks.flopsPerUs)
                                    : ordered_json()},
          {"peak_memory", std::move(roofs)}};
}

std::string toJsonText(const Report &report) {
  ordered_json importance = ordered_json::array();
  for (const ImportanceGroup &group : report.importance) {
    ordered_json parameters = ordered_json::array();
    for (const ParameterImportance &each : group.parameters)
      parameters.push_back({{"parameter", each.parameter},
                            {"values", each.values},
                            {"share", each.share}});
    importance.push_back({{"subject", group.subject},
                          {"trials", group.trials},
                          {"parameters", std::move(parameters)}});
  }
  ordered_json parts = ordered_json::array();
  for (const SpacePart &part : report.parts)
    parts.push_back({{"of", part.name},
                     {"points", part.points},
                     {"tried", part.tried},
                     {"coverage", part.coverage()}});
  ordered_json decisions = ordered_json::array();
  for (const Decision &each : report.decisions)
    decisions.push_back({{"time_ms", each.timeMs},
                         {"host", each.host},
                         {"version", each.version},
                         {"sentence", each.sentence},
                         {"tolerance_share", each.toleranceShare},
                         {"strategy", each.strategy},
                         {"seconds", each.seconds},
                         {"evaluations", each.evaluations},
                         {"complete", each.isComplete},
                         {"exhausted", each.isExhausted}});
  ordered_json kernels = ordered_json::array(), trials = ordered_json::array();
  for (const ReportKernel &kernel : report.kernels)
    kernels.push_back(toJson(kernel));
  for (const ReportTrial &trial : report.trials)
    trials.push_back(toJson(trial, report));
  ordered_json out{{"program", report.title},
                   {"file", report.subject.file},
                   {"entry", report.subject.entry},
                   {"arguments", report.subject.arguments},
                   {"key", report.problem.key()},
                   {"database", report.database},
                   {"devices", report.devices},
                   {"loop_trips", report.loopTrips},
                   {"decided", report.isDecided},
                   {"is_default", report.isDefault},
                   {"verdict", report.verdict},
                   {"before", toJson(report.before)},
                   {"after", toJson(report.after)},
                   {"change", report.change()},
                   {"configuration", report.configuration},
                   {"space", report.spaceSize},
                   {"spaces", std::move(parts)},
                   {"tried", report.tried},
                   {"failed", report.failed},
                   {"decisions", std::move(decisions)},
                   {"machine", machineJson(report)},
                   {"kernels", std::move(kernels)},
                   {"importance", std::move(importance)},
                   {"timeline_before", toJson(report.timelineBefore)},
                   {"timeline_after", toJson(report.timelineAfter)},
                   {"profile", toJson(report.profile)},
                   {"trials", std::move(trials)},
                   {"notes", report.notes}};
  // Names come from the user's file and may be no UTF-8.
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace mgpu::tuner
