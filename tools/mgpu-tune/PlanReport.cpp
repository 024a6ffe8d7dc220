// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the result of `plan`: for programs as JSON, and for people.
#include "tools/mgpu-tune/PlanReport.h"
#include "pipeline/program/Roles.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/PipelineReport.h"
#include "planner/schedule/Timeline.h"
#include "support/Units.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <set>

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

// Prints the result of `plan` for people.

namespace {

void printWhatIf(const planner::TargetPlan &now, const ChangedPlan &then,
                 bool contends, const std::vector<std::string> &changes) {
  auto percent = [](double from, double to) {
    return from > 0 ? 100 * (to / from - 1) : 0;
  };
  fmt::print("what if {}: makespan {} -> {} us ({:+.2f} %), bound {} -> {} us",
             fmt::join(changes, ", "), now.plan.usText(now.plan.makespanUs),
             now.plan.usText(then.plan.plan.makespanUs),
             percent(now.plan.makespanUs, then.plan.plan.makespanUs),
             now.plan.usText(now.plan.lowerBoundUs),
             now.plan.usText(then.plan.plan.lowerBoundUs));
  if (contends)
    fmt::print(", with contention {:.3f} -> {:.3f} us ({:+.2f} %)",
               now.contendedUs, then.plan.contendedUs,
               percent(now.contendedUs, then.plan.contendedUs));
  fmt::print("\n");
  const planner::Plan &was = now.plan, &is = then.plan.plan;
  if (was.loadUs + was.fetchUs + is.loadUs + is.fetchUs > 0)
    fmt::print("  once: load {} -> {} us, fetch {} -> {} us\n",
               was.usText(was.loadUs), was.usText(is.loadUs),
               was.usText(was.fetchUs), was.usText(is.fetchUs));
  if (then.scaled > 0)
    fmt::print("  {} durations of the file, scaled as estimated on both "
               "machines (assumed)\n",
               then.scaled);
  for (const std::string &name : then.absent)
    fmt::print("  its plan is better off without {}\n", name);
}

/// The line of a trace's recorded time, and that of --noise.
std::string besidePlan(const PlanReport &report, const LoadedProgram &program,
                       double noisePercent) {
  std::string text;
  if (report.noise)
    text = fmt::format("with durations that vary by {} %: {} us in half of {} "
                       "plays, {} us in 95 %{}\n",
                       noisePercent, report.plan.usText(report.noise->first),
                       noisePlays, report.plan.usText(report.noise->second),
                       report.machine->isHost() ? "" : " (with contention)");
  const planner::Plan &plan = report.plan;
  if (program.recordedUs > 0)
    text += fmt::format(
        "recorded: {:.3f} us; in this order: {:.3f} us ({:+.2f} %), bound "
        "{:.3f} us\n",
        program.recordedUs, plan.makespanUs,
        100 * (plan.makespanUs / program.recordedUs - 1), plan.lowerBoundUs);
  if (program.recordedUs > plan.lowerBoundUs && plan.lowerBoundUs > 0)
    text += fmt::format(
        "a graph of this work would save at most {:.3f} us ({:.1f} %), in "
        "which no kernel that others wait for runs\n",
        program.recordedUs - plan.lowerBoundUs,
        100 * (1 - plan.lowerBoundUs / program.recordedUs));
  if (program.recordedUs > 0 && program.recordedUs < plan.makespanUs &&
      plan.lowerBoundUs == program.recordedUs)
    text += "kernels of a device ran at the same time in the recording, which "
            "a plan does not let them: what was recorded is the bound\n";
  return text;
}

void printExplained(const PlanReport &report, const LoadedProgram &program) {
  fmt::print("{}", planner::explain(report.plan, program.dag));
  for (const std::string &reason : program.notFused)
    fmt::print("not fused: {}\n", reason);
  if (report.workspace > 0)
    fmt::print("of the memory of each device, {} bytes are kept for "
               "cuBLASLt's workspaces\n",
               report.workspace);
  if (report.predicted)
    fmt::print("predicted: {}\n", report.predicted->text());
  if (report.plan.boundBy == planner::BoundArgument::Search)
    fmt::print("bound by search: nothing is shorter; {:.3f} us of it have a "
               "witness:\n",
               report.bound->us);
  for (const std::string &words : report.bound->words)
    fmt::print("bound by {}: {}\n", toString(report.bound->by), words);
  if (report.target)
    fmt::print("{}",
               explainModel(*report.target, program.dag, *report.machine));
}

/// On what the times rest, for people.
std::string durationsText(const PlanReport &report, const planner::Dag &dag) {
  size_t given = 0;
  for (const planner::DagNode &node : dag.nodes)
    given += node.durationUs.has_value();
  if (given == dag.nodes.size() && given > 0)
    return "durations  the file's\n";
  std::string out = "durations  ";
  if (given > 0)
    out += fmt::format("given of {}, the others: ", counted(given, "node"));
  if (report.machine && !report.machine->isHost())
    return out + fmt::format("modelled for {}; --explain says from what\n",
                             report.machine->name());
  if (report.plan.model.starts_with("measured"))
    return out + fmt::format("{}; what is not measured is modelled, and only "
                             "an order of magnitude\n",
                             report.plan.model);
  if (report.plan.model == "host, calibrated")
    return out + "modelled by rates measured here (calibrate)\n";
  return out +
         "modelled by assumed rates: an order of magnitude. `mgpu-tune "
         "profile` measures them here; `mgpu-tune calibrate` measures the "
         "machine\n";
}

/// The origins of times by kind of node, where they are not one for all.
std::string originsText(const planner::Plan &plan, const planner::Dag &dag) {
  std::set<planner::Origin> origins;
  for (const planner::PlanStep &step : plan.steps)
    origins.insert(step.origin);
  std::string out;
  if (origins.size() > 1)
    for (const std::string &line : planner::originLines(plan, dag))
      out += fmt::format("           {}\n", line);
  return out;
}

} // namespace

void printText(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options) {
  if (report.changed)
    printWhatIf(*report.target, *report.changed, !report.machine->isHost(),
                options.whatIf);
  const planner::Plan &plan = report.plan;
  if (options.shardings > 0) {
    fmt::print("{}// {}: {}\n{}", toComments(report.shardings), plan.scheduler,
               plan.verdictLine(), report.shardings.text);
    return;
  }
  const std::string beside = besidePlan(report, program, options.noisePercent);
  if (options.explain) {
    fmt::print("{}", beside);
    printExplained(report, program);
    return;
  }
  if (options.output == standardOutput) {
    fmt::print(stderr, "{}", beside);
    fmt::print("{}", planner::toText(plan, program.dag));
    return;
  }
  fmt::print("{}", beside);
  if (!options.output.empty() || !options.whatIf.empty()) {
    fmt::print("{}: {}{}\n", plan.scheduler, plan.verdictLine(),
               options.output.empty() ? "" : ", written to " + options.output);
    return;
  }
  fmt::print("{}", planner::summaryText(plan, program.dag));
  const uint32_t used = program.dag.numDevices;
  fmt::print(
      "{}",
      idleText(used,
               report.machine && !report.machine->isHost()
                   ? report.machine->topology().devices
                   : targetDevices(program.from.target, used).value_or(used)));
  if (report.predicted)
    fmt::print("predicted  {}\n", report.predicted->text());
  if (program.from.oneDevice)
    fmt::print("alike      device 0 stands for {}: of the others the plan has "
               "the collectives alone\n",
               counted(program.dag.numDevices, "device"));
  fmt::print("{}", toText(report.order));
  if (!program.meshes.empty())
    fmt::print("{}", toText(planner::reportPipeline(plan, program.dag,
                                                    program.meshes)));
  if (report.target && !report.machine->isHost())
    fmt::print("contention {:.3f} us, where work on a device slows down what "
               "runs beside it\n",
               report.target->contendedUs);
  fmt::print("{}{}{}", uploadsText(program, durationsOf(plan, program.dag)),
             durationsText(report, program.dag),
             originsText(plan, program.dag));
  if (options.steps)
    fmt::print("{}", planner::stepsText(plan, program.dag));
  else
    fmt::print("steps      --steps lists them, --explain says why they are "
               "there, -o FILE writes the plan\n");
}

// Prints the result of `plan --pareto`.

using nlohmann::json;

static void printFrontJson(const Front &front) {
  json rows = json::array();
  for (const FrontPoint &point : front.points) {
    rows.push_back({{"memory_bytes", point.memory},
                    {"replay_us", point.makespanUs},
                    {"contended_replay_us", point.contendedUs},
                    {"replay_bound_us", point.lowerBoundUs},
                    {"transforms", point.transforms}});
    if (!point.order.empty())
      rows.back()["schedule"] = point.order;
  }
  tools::printJson(json{{"front", std::move(rows)}, {"below", front.stopped}});
}

void printFront(const Front &front, bool asJson) {
  if (asJson)
    return printFrontJson(front);
  fmt::print("{:>16}  {:>14}  {:>9}  {:>18}  transforms\n", "memory (bytes)",
             "makespan (us)", "more", "with contention");
  for (const FrontPoint &point : front.points) {
    double least = front.points.front().chosenUs;
    fmt::print("{:>16}  {:>14.3f}  {:>+7.2f} %  {:>18.3f}  {}{}\n",
               point.memory, point.makespanUs,
               least > 0 ? 100 * (point.chosenUs / least - 1) : 0,
               point.contendedUs,
               point.transforms.empty()
                   ? "none"
                   : fmt::format("{}", fmt::join(point.transforms, " ")),
               point.order.empty() ? "" : ", schedule " + point.order);
  }
  if (!front.stopped.empty())
    fmt::print("below: {}\n", front.stopped);
}

} // namespace mgpu::tools
