// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the result of `plan --json`.
#include "pipeline/program/Roles.h"
#include "planner/schedule/PipelineReport.h"
#include "planner/schedule/Timeline.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/PlanReport.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace mgpu::tools {

using nlohmann::json;

namespace {

json toJson(const planner::AlgorithmChoice &choice) {
  auto words = [](const planner::NcclTime &time) {
    return json{{"name", toString(time.algorithm.shape)},
                {"protocol", toString(time.algorithm.protocol)},
                {"estimate_us", time.us}};
  };
  json out = words(choice.best);
  if (choice.next) {
    out["runner_up"] = words(*choice.next);
    out["difference_us"] = choice.next->us - choice.best.us;
  }
  out["duration_from"] = choice.durationFrom;
  return out;
}

/// Adds what --explain says of a node.
void explainNode(json &out, const planner::PlanStep &step,
                 const planner::DagNode &node, const std::string &reason,
                 std::span<const planner::DepEdge> dependencies) {
  out["kind"] = toString(workClass(node));
  out["location"] = node.location;
  out["duration_origin"] = toString(step.origin);
  out["starts_after"] = reason;
  out["dependencies"] = json::array();
  for (const planner::DepEdge &edge : dependencies)
    out["dependencies"].push_back(edge.from.value);
  out["waits"] = json::array();
  for (planner::NodeId wait : step.waits)
    out["waits"].push_back(wait.value);
}

json toJson(const planner::PipelineReport &report) {
  json out{{"bubble", report.bubble},
           {"transfer_bytes", report.transferBytes},
           {"host_bytes", report.hostBytes},
           {"meshes", json::array()},
           {"transfers", json::array()}};
  for (const planner::PipelineReport::Mesh &mesh : report.meshes)
    out["meshes"].push_back({{"name", mesh.name},
                             {"bubble", mesh.bubble},
                             {"peak_bytes", mesh.peakBytes}});
  for (const planner::PipelineReport::Transfer &transfer : report.transfers)
    out["transfers"].push_back({{"from", transfer.from},
                                {"to", transfer.to},
                                {"copies", transfer.copies},
                                {"bytes", transfer.bytes}});
  return out;
}

json toJson(const OrderChoice &order) {
  json out{{"name", order.name}, {"tried", json::array()}};
  for (const TriedOrder &tried : order.tried)
    out["tried"].push_back(
        tried.why.empty()
            ? json{{"name", tried.name}, {"replay_us", tried.makespanUs}}
            : json{{"name", tried.name}, {"why", tried.why}});
  return out;
}

json toJson(const ShardingChoice &choice) {
  json out{{"tried", choice.tried},
           {"without_plan", choice.noPlan},
           {"best_replay_us", choice.bestUs},
           {"splits", choice.splits},
           {"program", choice.text}};
  if (choice.givenUs)
    out["given_replay_us"] = *choice.givenUs;
  return out;
}

json toJson(const planner::Plan &plan, const planner::Dag &dag,
            const std::vector<planner::AlgorithmChoice> &algorithms,
            bool isExplained) {
  planner::PlanSummary summary = planner::summarize(plan, dag);
  json out{{"scheduler", plan.scheduler},
           {"model", plan.model},
           {"devices", plan.numDevices},
           {"load_us", plan.loadUs},
           {"replay_us", plan.makespanUs},
           {"fetch_us", plan.fetchUs},
           {"replay_bound_us", plan.lowerBoundUs},
           {"replay_bound_by", toString(plan.boundBy)},
           {"replay_ratio", summary.ratio},
           {"replay_verdict", plan.boundVerdict()},
           {"serial_replay_us", summary.serialMakespanUs},
           {"loop_trips", dag.loop.trips},
           {"arena_bytes", plan.arenaBytes},
           {"arena_bound_bytes", summary.arenaBoundBytes},
           {"arena_ratio", summary.arenaRatio},
           {"verified", true}};
  if (plan.error > 0)
    out["error"] = plan.error;
  if (plan.memoryBytes != UINT64_MAX)
    out["memory_bytes"] = plan.memoryBytes;
  for (const planner::KindOrigins &each : planner::originsOf(plan, dag)) {
    json row{{"kind", each.kind}, {"mixed", each.isMixed()}};
    for (planner::Origin origin : planner::allOrigins)
      if (origin != planner::Origin::Scaled || each.nodes[size_t(origin)] > 0)
        row[std::string(toString(origin))] = each.nodes[size_t(origin)];
    out["durations"].push_back(std::move(row));
  }
  std::map<planner::NodeId, const planner::AlgorithmChoice *> choices;
  for (const planner::AlgorithmChoice &choice : algorithms)
    choices.emplace(choice.node, &choice);
  const std::vector<std::string> reasons =
      isExplained ? planner::reasonsOf(plan, dag) : std::vector<std::string>();
  const planner::Predecessors predecessors(dag);
  json &nodes = out["nodes"] = json::array();
  for (const planner::PlanStep &step : plan.steps) {
    json streams = json::array();
    for (planner::PlanStream stream : step.streams)
      streams.push_back(
          {{"device", stream.device.value}, {"stream", stream.stream.value}});
    nodes.push_back({{"id", step.node.value},
                     {"name", dag.node(step.node).name},
                     {"streams", std::move(streams)},
                     {"phase", toString(dag.node(step.node).phase)},
                     {"phase_start_us", step.startUs},
                     {"phase_end_us", step.startUs + step.durationUs}});
    if (isExplained)
      explainNode(nodes.back(), step, dag.node(step.node),
                  reasons[nodes.size() - 1], predecessors.of(step.node));
    if (auto it = choices.find(step.node); it != choices.end())
      nodes.back()["algorithm"] = toJson(*it->second);
    else if (step.algorithm) // a plan that was made elsewhere
      nodes.back()["algorithm"] = {
          {"name", toString(step.algorithm->shape)},
          {"protocol", toString(step.algorithm->protocol)}};
  }
  return out;
}

json toJson(const ChangedPlan &then, const std::vector<std::string> &changes) {
  return {{"changes", changes},
          {"load_us", then.plan.plan.loadUs},
          {"replay_us", then.plan.plan.makespanUs},
          {"fetch_us", then.plan.plan.fetchUs},
          {"replay_bound_us", then.plan.plan.lowerBoundUs},
          {"contended_replay_us", then.plan.contendedUs},
          {"contended_serial_replay_us", then.plan.serialUs},
          {"scaled", then.scaled},
          {"absent", then.absent}};
}

} // namespace

void printJson(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options) {
  const auto &target = report.target;
  json out = toJson(report.plan, program.dag,
                    target ? target->algorithms
                           : std::vector<planner::AlgorithmChoice>(),
                    options.explain);
  addUploads(out, program, durationsOf(report.plan, program.dag));
  addPrediction(out, report.predicted);
  if (report.bound)
    out["replay_bound_words"] = report.bound->words;
  if (!program.meshes.empty())
    out["pipeline"] = toJson(
        planner::reportPipeline(report.plan, program.dag, program.meshes));
  if (!report.order.tried.empty())
    out["schedule"] = toJson(report.order);
  if (options.shardings > 0)
    out["shardings"] = toJson(report.shardings);
  if (report.noise)
    out["noise"] = {{"percent", options.noisePercent},
                    {"replay_p50_us", report.noise->first},
                    {"replay_p95_us", report.noise->second}};
  if (program.recordedUs > 0)
    out["recorded_us"] = program.recordedUs;
  if (target) {
    if (!report.machine->isHost()) {
      out["contended_replay_us"] = target->contendedUs;
      out["contended_serial_replay_us"] = target->serialUs;
    }
    for (const planner::TransformGain &gain : target->gains)
      out["transforms"].push_back(
          {{"name", toString(gain.transform)},
           {"changes", gain.changes},
           {"replay_before_us", gain.beforeUs},
           {"replay_after_us", gain.afterUs},
           {"contended_replay_before_us", gain.contendedBeforeUs},
           {"contended_replay_after_us", gain.contendedAfterUs},
           {"kept", gain.isKept},
           {"left", gain.left}});
  }
  if (report.changed)
    out["what_if"] = toJson(*report.changed, options.whatIf);
  tools::printJson(out);
}

} // namespace mgpu::tools
