// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune plan`.
#include "pipeline/ChooseOrder.h"
#include "pipeline/ChooseShardings.h"
#include "pipeline/Kernels.h"
#include "pipeline/Load.h"
#include "pipeline/Target.h"
#include "planner/dagfile/DagJson.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/Origins.h"
#include "planner/schedule/PipelineReport.h"
#include "planner/schedule/PlanProof.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/Timeline.h"
#include "support/FileIO.h"
#include "support/Plural.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace mgpu::pipeline {

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
            ? json{{"name", tried.name}, {"makespan_us", tried.makespanUs}}
            : json{{"name", tried.name}, {"why", tried.why}});
  return out;
}

json toJson(const ShardingChoice &choice) {
  json out{{"tried", choice.tried},
           {"without_plan", choice.noPlan},
           {"best_us", choice.bestUs},
           {"splits", choice.splits},
           {"program", choice.text}};
  if (choice.givenUs)
    out["given_us"] = *choice.givenUs;
  return out;
}

json toJson(const planner::Plan &plan, const planner::Dag &dag,
            const std::vector<planner::AlgorithmChoice> &algorithms,
            bool isExplained) {
  planner::PlanSummary summary = planner::summarize(plan, dag);
  json out{{"scheduler", plan.scheduler},
           {"model", plan.model},
           {"devices", plan.numDevices},
           {"makespan_us", plan.makespanUs},
           {"lower_bound_us", plan.lowerBoundUs},
           {"bound_by", toString(plan.boundBy)},
           {"ratio", summary.ratio},
           {"verdict", plan.boundVerdict()},
           {"serial_makespan_us", summary.serialMakespanUs},
           {"loop_trips", dag.loop.trips},
           {"arena_bytes", plan.arenaBytes},
           {"arena_bound_bytes", summary.arenaBoundBytes},
           {"arena_ratio", summary.arenaRatio},
           {"verified", true}};
  if (plan.memoryBytes != UINT64_MAX)
    out["memory_bytes"] = plan.memoryBytes;
  for (const planner::KindOrigins &each : planner::originsOf(plan, dag)) {
    json row{{"kind", each.kind}, {"mixed", each.isMixed()}};
    for (planner::Origin origin : planner::allOrigins)
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
                     {"start_us", step.startUs},
                     {"end_us", step.startUs + step.durationUs}});
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

int printFront(const Front &front, bool asJson) {
  if (asJson) {
    json rows = json::array();
    for (const FrontPoint &point : front.points) {
      rows.push_back({{"memory_bytes", point.memory},
                      {"makespan_us", point.makespanUs},
                      {"contended_makespan_us", point.contendedUs},
                      {"lower_bound_us", point.lowerBoundUs},
                      {"transforms", point.transforms}});
      if (!point.order.empty())
        rows.back()["schedule"] = point.order;
    }
    fmt::print("{}\n",
               json{{"front", std::move(rows)}, {"below", front.stopped}}.dump(
                   2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
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
  return 0;
}

json toJson(const ChangedPlan &then, const std::vector<std::string> &changes) {
  return {{"changes", changes},
          {"makespan_us", then.plan.plan.makespanUs},
          {"lower_bound_us", then.plan.plan.lowerBoundUs},
          {"contended_makespan_us", then.plan.contendedUs},
          {"scaled", then.scaled},
          {"absent", then.absent}};
}

void printWhatIf(const planner::TargetPlan &now, const ChangedPlan &then,
                 const std::vector<std::string> &changes) {
  auto percent = [](double from, double to) {
    return from > 0 ? 100 * (to / from - 1) : 0;
  };
  fmt::print(
      "what if {}: makespan {:.3f} -> {:.3f} us ({:+.2f} %), bound "
      "{:.3f} -> {:.3f} us, with contention {:.3f} -> {:.3f} us "
      "({:+.2f} %)\n",
      fmt::join(changes, ", "), now.plan.makespanUs, then.plan.plan.makespanUs,
      percent(now.plan.makespanUs, then.plan.plan.makespanUs),
      now.plan.lowerBoundUs, then.plan.plan.lowerBoundUs, now.contendedUs,
      then.plan.contendedUs, percent(now.contendedUs, then.plan.contendedUs));
  if (then.scaled > 0)
    fmt::print("  {} durations of the file, scaled as estimated on both "
               "machines (assumed)\n",
               then.scaled);
  for (const std::string &name : then.absent)
    fmt::print("  its plan is better off without {}\n", name);
}

constexpr uint32_t noisePlays = 400;
constexpr std::string_view standardOutput = "-"; // as -o names it

/// Options that only make sense for a machine that is not here.
Result<void> refuseSimOptions(const PlanCommandOptions &options) {
  const char *given = options.load.given.contains("--budget") ? "--budget"
                      : !options.machine.memory.empty()       ? "--memory"
                      : !options.machine.collectivesFile.empty()
                          ? "--collectives"
                      : !options.whatIf.empty()  ? "--what-if"
                      : options.noisePercent > 0 ? "--noise"
                      : options.pareto           ? "--pareto"
                      : options.shardings > 0    ? "--shardings"
                                                 : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("{} is for targets sim:NAME; the host is what it "
                            "is",
                            given));
  return {};
}

/// Options of one plan, beside one that makes many.
Result<void> refuseBesidePareto(const PlanCommandOptions &options) {
  const char *given = !options.whatIf.empty()            ? "--what-if"
                      : options.explain                  ? "--explain"
                      : options.noisePercent > 0         ? "--noise"
                      : !options.dotFile.empty()         ? "--dot"
                      : !options.traceFile.empty()       ? "--trace"
                      : !options.svgFile.empty()         ? "--svg"
                      : !options.certificateFile.empty() ? "--certificate"
                      : !options.dagFile.empty()         ? "--dag"
                      : !options.output.empty()          ? "-o"
                                                         : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("--pareto makes several plans and {} is of one: "
                            "plan again with the --memory of a row",
                            given));
  return {};
}

/// Options of what is printed of one plan, beside one that prints a program.
Result<void> refuseBesideShardings(const PlanCommandOptions &options) {
  const char *given = options.pareto                     ? "--pareto"
                      : !options.whatIf.empty()          ? "--what-if"
                      : options.explain                  ? "--explain"
                      : options.steps                    ? "--steps"
                      : options.noisePercent > 0         ? "--noise"
                      : options.output == standardOutput ? "-o -"
                                                         : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("--shardings prints a program: plan that one for "
                            "{}",
                            given));
  return {};
}

/// A plan, and what is known of it beside.
struct PlanReport {
  planner::Plan plan;
  uint32_t threads = 0; ///< that replay it on the host, where that is known
  // Only for a machine that is not here:
  std::optional<planner::TopologyEstimator> machine;
  std::optional<planner::TargetPlan> target;
  uint64_t workspace = 0; ///< each device's, for cuBLASLt
  planner::Dag source;    ///< for --what-if: before the transforms
  std::optional<ChangedPlan> changed;
  /// The median and the 95th percentile of the makespan.
  std::optional<std::pair<double, double>> noise;
  /// What proves the plan's bound without a search, if it is asked for.
  std::optional<planner::PlanBound> bound;
  OrderChoice order;        ///< for --schedule auto
  ShardingChoice shardings; ///< for --shardings
};

/// Plans for the host or GPUs.
Result<void> planHere(LoadedProgram &program, const PlanCommandOptions &options,
                      PlanReport &report) {
  MGPU_TRY(refuseSimOptions(options));
  MGPU_TRY(checkSeed(options.prepare, options.load.given));
  const std::string &target = options.load.target;
  if (!target.empty()) // its rates are the model's
    MGPU_TRY(targetDevices(target, program.dag.numDevices));
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options.prepare));
  if (!choice) {
    MGPU_TRY_ASSIGN(report.plan, makePlan(program, options.prepare));
    return {};
  }
  MGPU_TRY(transformChosen(program, *choice));
  MGPU_TRY_ASSIGN(report.plan, makePlan(program, *choice));
  report.threads = choice->config.threads;
  return {};
}

/// Plans for a machine that is not here. `program` is left as the plan's
/// transforms change it.
Result<void> planElsewhere(LoadedProgram &program,
                           const PlanCommandOptions &options,
                           const MachineRequest &request, PlanReport &report) {
  if (!options.whatIf.empty())
    report.source = program.dag;
  MGPU_TRY_ASSIGN(report.target, makePlan(program.dag, request));
  report.plan = report.target->plan;
  if (report.target->dag)
    program.dag = std::move(*report.target->dag);
  if (options.noisePercent > 0) {
    std::vector<double> plays = planner::simulateNoise(
        report.plan, program.dag,
        planner::contentionOf(request.machine.machine()),
        options.noisePercent / 100, noisePlays, options.prepare.seed);
    report.noise = {plays[plays.size() / 2], plays[plays.size() * 95 / 100]};
  }
  return {};
}

/// Plans the program, where it was loaded with the schedule "auto" in each
/// order. `report` knows the machine, if that is not here.
Result<void> planProgram(LoadedProgram &program,
                         const PlanCommandOptions &options,
                         PlanReport &report) {
  const PlanReport before = report;
  PlanReport made;
  auto planOf = [&](LoadedProgram &ordered) -> Result<double> {
    made = before;
    if (made.machine)
      MGPU_TRY(planElsewhere(
          ordered, options,
          {*made.machine, options.prepare, options.machine, made.workspace},
          made));
    else
      MGPU_TRY(planHere(ordered, options, made));
    return made.plan.makespanUs;
  };
  auto keep = [&] { report = std::move(made); };
  if (options.shardings > 0) {
    MGPU_TRY_ASSIGN(ShardingChoice shardings,
                    chooseShardings(program, options.shardings,
                                    options.prepare.seed, planOf, keep));
    report.shardings = std::move(shardings);
    return {};
  }
  MGPU_TRY_ASSIGN(OrderChoice order, chooseOrder(program, planOf, keep));
  report.order = std::move(order);
  return {};
}

Result<void> writeFiles(const planner::Plan &plan, const planner::Dag &dag,
                        const std::vector<planner::MeshDevices> &meshes,
                        const PlanCommandOptions &options) {
  if (!options.dotFile.empty())
    MGPU_TRY(writeFileAtomic(options.dotFile, planner::toDot(plan, dag)));
  if (!options.traceFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.traceFile, planner::toChromeTrace(plan, dag)));
  if (!options.svgFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.svgFile, planner::toSvg(plan, dag, meshes)));
  if (!options.dagFile.empty()) {
    std::vector<double> durations(dag.nodes.size());
    for (const planner::PlanStep &step : plan.steps)
      durations[step.node.value] = step.durationUs;
    if (dag.spmd)
      return fail(ErrorKind::Unsupported,
                  "--dag: what is planned is a DAG file that is spmd already; "
                  "leave it out");
    MGPU_TRY(writeFileAtomic(options.dagFile,
                             planner::programJsonText(dag, durations)));
  }
  if (!options.output.empty() && options.output != standardOutput)
    MGPU_TRY(writeFileAtomic(options.output, planner::toText(plan, dag)));
  return {};
}

/// What proves the plan's bound, to be written or explained.
Result<void> proveBound(PlanReport &report, const planner::Dag &dag,
                        const PlanCommandOptions &options) {
  if (options.certificateFile.empty() && !options.explain)
    return {};
  MGPU_TRY_ASSIGN(report.bound, planner::proofOf(report.plan, dag));
  if (options.certificateFile.empty())
    return {};
  return writeFileAtomic(options.certificateFile,
                         toText(report.bound->certificates));
}

void printJson(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options) {
  const auto &target = report.target;
  json out = toJson(report.plan, program.dag,
                    target ? target->algorithms
                           : std::vector<planner::AlgorithmChoice>(),
                    options.explain);
  if (report.bound)
    out["bound_words"] = report.bound->words;
  if (!program.meshes.empty())
    out["pipeline"] = toJson(
        planner::reportPipeline(report.plan, program.dag, program.meshes));
  if (!report.order.tried.empty())
    out["schedule"] = toJson(report.order);
  if (options.shardings > 0)
    out["shardings"] = toJson(report.shardings);
  if (report.noise)
    out["noise"] = {{"percent", options.noisePercent},
                    {"p50_us", report.noise->first},
                    {"p95_us", report.noise->second}};
  if (program.recordedUs > 0)
    out["recorded_us"] = program.recordedUs;
  if (target) {
    out["contended_makespan_us"] = target->contendedUs;
    out["contended_serial_us"] = target->serialUs;
    for (const planner::TransformGain &gain : target->gains)
      out["transforms"].push_back(
          {{"name", toString(gain.transform)},
           {"changes", gain.changes},
           {"makespan_before_us", gain.beforeUs},
           {"makespan_after_us", gain.afterUs},
           {"contended_before_us", gain.contendedBeforeUs},
           {"contended_after_us", gain.contendedAfterUs},
           {"kept", gain.isKept},
           {"left", gain.left}});
  }
  if (report.changed)
    out["what_if"] = toJson(*report.changed, options.whatIf);
  pipeline::printJson(out);
}

/// What was recorded of a trace, and what --noise found.
std::string besidePlan(const PlanReport &report, const LoadedProgram &program,
                       double noisePercent) {
  std::string text;
  if (report.noise)
    text = fmt::format("with durations that vary by {} %: {:.3f} us in half "
                       "of {} plays, {:.3f} us in 95 % (with contention)\n",
                       noisePercent, report.noise->first, noisePlays,
                       report.noise->second);
  const planner::Plan &plan = report.plan;
  if (program.recordedUs > 0)
    text += fmt::format(
        "recorded: {:.3f} us; in this order: {:.3f} us ({:+.2f} %), bound "
        "{:.3f} us\n",
        program.recordedUs, plan.makespanUs,
        100 * (plan.makespanUs / program.recordedUs - 1), plan.lowerBoundUs);
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
  if (report.threads > 0)
    fmt::print("a replay on {} of this machine: {:.3f} us ({})\n",
               counted(report.threads, "thread"),
               planner::hostReplayUs(report.plan, program.dag, report.threads),
               report.plan.model);
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
    out +=
        fmt::format("the file's of {}, the others: ", counted(given, "node"));
  if (report.machine)
    return out + fmt::format("modelled for {}; --explain says from what\n",
                             report.machine->name());
  if (report.plan.model.starts_with("measured"))
    return out + fmt::format("{}; what is not measured is modelled, and only "
                             "an order of magnitude\n",
                             report.plan.model);
  return out + "modelled by assumed rates: an order of magnitude. `mgpu-tune "
               "profile` measures them here; `mgpu-tune calibrate -o FILE` "
               "measures the machine, for --target sim:FILE\n";
}

/// What the times of each kind of node rest on, where that is not one thing for
/// all.
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

void printText(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options) {
  if (report.changed)
    printWhatIf(*report.target, *report.changed, options.whatIf);
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
  fmt::print("{}", toText(report.order));
  if (!program.meshes.empty())
    fmt::print("{}", toText(planner::reportPipeline(plan, program.dag,
                                                    program.meshes)));
  if (report.target)
    fmt::print("contention {:.3f} us, where work on a device slows down what "
               "runs beside it\n",
               report.target->contendedUs);
  fmt::print("{}{}", durationsText(report, program.dag),
             originsText(plan, program.dag));
  if (options.steps)
    fmt::print("{}", planner::stepsText(plan, program.dag));
  else
    fmt::print("steps      --steps lists them, --explain says why they are "
               "there, -o FILE writes the plan\n");
}

/// Files that are written must not be read.
Result<void> checkFiles(const PlanCommandOptions &options) {
  FileUses uses = filesRead(
      options.load, {{"--collectives", options.machine.collectivesFile}});
  MGPU_TRY(uses.write("--trace", options.traceFile));
  MGPU_TRY(uses.write("--dot", options.dotFile));
  for (const char *other : {".png", ".jpg", ".pdf"})
    if (options.svgFile.ends_with(other))
      return fail(
          ErrorKind::Usage,
          fmt::format("--svg {}: it writes SVG: name the file {}.svg",
                      options.svgFile,
                      options.svgFile.substr(0, options.svgFile.rfind('.'))));
  MGPU_TRY(uses.write("--svg", options.svgFile));
  MGPU_TRY(uses.write("--certificate", options.certificateFile));
  MGPU_TRY(uses.write("--dag", options.dagFile));
  return options.output == standardOutput ? Result<void>()
                                          : uses.write("-o", options.output);
}

} // namespace

Result<int> runPlan(const PlanCommandOptions &options) {
  if (options.pareto)
    MGPU_TRY(refuseBesidePareto(options));
  if (options.shardings > 0)
    MGPU_TRY(refuseBesideShardings(options));
  MGPU_TRY(checkFiles(options));
  const bool isElsewhere = options.load.target.starts_with("sim:");
  LoadOptions load = options.load;
  load.usesRecord = options.prepare.useTuned && options.output.empty();
  load.kernelTexts = !isElsewhere && looksForTuned(load, options.prepare);
  load.keepText = options.shardings > 0;
  load.productTexts = isElsewhere; // the workspaces take of its memory
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  PlanReport report;
  if (isElsewhere) {
    MGPU_TRY_ASSIGN(report.machine, openMachine(load.target, options.machine));
    if (load.given.contains("--seed") && !program.dag.spmd &&
        options.noisePercent == 0 && options.shardings == 0)
      return fail(ErrorKind::Usage,
                  "--seed: nothing of this plan is random: give --noise, or "
                  "leave it out");
    report.workspace = productWorkspace(program, options.prepare.streams);
    if (options.pareto) {
      const MachineRequest request{*report.machine, options.prepare,
                                   options.machine, report.workspace};
      MGPU_TRY_ASSIGN(const Front front, makeFrontOfOrders(program, request));
      return printFront(front, options.json);
    }
  }
  MGPU_TRY(planProgram(program, options, report));
  MGPU_TRY(writeFiles(report.plan, program.dag, program.meshes, options));
  MGPU_TRY(proveBound(report, program.dag, options));
  if (!options.whatIf.empty()) {
    const MachineRequest request{*report.machine, options.prepare,
                                 options.machine, report.workspace};
    MGPU_TRY_ASSIGN(report.changed, planWhatIf(report.source, program.dag,
                                               request, options.whatIf));
  }
  if (options.json)
    printJson(report, program, options);
  else
    printText(report, program, options);
  return 0;
}

} // namespace mgpu::pipeline
