// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune plan`.
#include "db/FileSystem.h"
#include "device/api/Topology.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/TargetPlan.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/WhatIf.h"
#include "support/FileIO.h"
#include "support/Plural.h"
#include "support/Units.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/Program.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace mgpu::tune {

using nlohmann::json;

static json toJson(const planner::AlgorithmChoice &choice) {
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

static json toJson(const planner::Plan &plan, const planner::Dag &dag,
                   const std::vector<planner::AlgorithmChoice> &algorithms) {
  planner::PlanSummary summary = planner::summarize(plan, dag);
  json out{{"scheduler", plan.scheduler},
           {"model", plan.model},
           {"devices", plan.numDevices},
           {"makespan_us", plan.makespanUs},
           {"lower_bound_us", plan.lowerBoundUs},
           {"ratio", summary.ratio},
           {"serial_makespan_us", summary.serialMakespanUs},
           {"loop_trips", dag.loop.trips},
           {"arena_bytes", plan.arenaBytes},
           {"arena_bound_bytes", summary.arenaBoundBytes},
           {"arena_ratio", summary.arenaRatio},
           {"verified", true}};
  std::map<planner::NodeId, const planner::AlgorithmChoice *> choices;
  for (const planner::AlgorithmChoice &choice : algorithms)
    choices.emplace(choice.node, &choice);
  json &nodes = out["nodes"] = json::array();
  for (const planner::PlanStep &step : plan.steps) {
    json lanes = json::array();
    for (planner::Lane lane : step.lanes)
      lanes.push_back(
          {{"device", lane.device.value}, {"stream", lane.stream.value}});
    nodes.push_back({{"id", step.node.value},
                     {"name", dag.node(step.node).name},
                     {"lanes", std::move(lanes)},
                     {"start_us", step.startUs},
                     {"end_us", step.startUs + step.durationUs}});
    if (auto it = choices.find(step.node); it != choices.end())
      nodes.back()["algorithm"] = toJson(*it->second);
    else if (step.algorithm) // a plan that was made elsewhere
      nodes.back()["algorithm"] = {
          {"name", toString(step.algorithm->shape)},
          {"protocol", toString(step.algorithm->protocol)}};
  }
  return out;
}

/// A machine that is not here.
static Result<planner::TopologyEstimator> openMachine(const Options &options) {
  using namespace planner;
  MGPU_TRY_ASSIGN(device::Topology topology,
                  device::openTopology(options.target));
  std::shared_ptr<const CollectiveTable> table;
  if (!options.collectivesFile.empty()) {
    MGPU_TRY_ASSIGN(auto rows, readCollectives(options.collectivesFile));
    MGPU_TRY_ASSIGN(auto made, CollectiveTable::create(std::move(rows)));
    table = std::make_shared<const CollectiveTable>(std::move(made));
  }
  return TopologyEstimator(std::move(topology), std::move(table));
}

/// `memory` in bytes, or 0 for what the options say; of that, `workspace` is
/// for cuBLASLt.
static Result<planner::TargetPlan>
planForMachine(const planner::Dag &dag,
               const planner::TopologyEstimator &machine,
               const Options &options, uint64_t workspace, uint64_t memory = 0,
               std::vector<planner::OpFactor> ops = {}) {
  using namespace planner;
  if (options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--scheduler {} is for the host; sim targets are "
                            "planned by search",
                            options.scheduler));
  TargetOptions target;
  MGPU_TRY_ASSIGN(target.memoryBytes,
                  memoryLimit(machine.machine(), options.memory));
  if (memory > 0)
    target.memoryBytes = memory;
  if (target.memoryBytes <= workspace)
    return fail(ErrorKind::Invalid,
                fmt::format("cuBLASLt needs {} bytes of each device, which has "
                            "{}: allow more --memory, or use "
                            "--tensor-cores=none",
                            workspace, target.memoryBytes));
  target.memoryBytes -= workspace;
  target.streamsPerDevice = options.streams;
  target.seed = options.seed;
  MGPU_TRY_ASSIGN(planner::TransformChoice choice,
                  planner::parseTransforms(options.transforms));
  target.transforms = std::move(choice.transforms);
  target.freedoms = choice.freedoms;
  target.ops = std::move(ops);
  MGPU_TRY_ASSIGN(SearchBudget budget, parseBudget(options.budget));
  rcpsp::Budget search(budget.seconds, budget.evaluations);
  return planForTarget(dag, machine, target, search);
}

/// The bytes of the fullest device, resident ones included.
static uint64_t memoryOf(const planner::TargetPlan &plan,
                         const planner::Dag &dag) {
  if (plan.overlap)
    return plan.overlap->peakBytes;
  uint64_t most = 0;
  for (uint64_t bytes : plan.plan.arenaBytes)
    most = std::max(most, bytes + dag.residentBytes);
  return most;
}

/// What one point of the front is: of several with no more memory and time the
/// others are left out.
struct FrontPoint {
  uint64_t memory = 0;
  double makespanUs = 0, contendedUs = 0, lowerBoundUs = 0;
  std::vector<std::string> transforms;
};

/// Plans under ever less memory until nothing fits.
static Result<int> runPareto(const planner::Dag &dag,
                             const planner::TopologyEstimator &machine,
                             const Options &options, uint64_t workspace) {
  constexpr double step = 0.9;
  std::vector<FrontPoint> front;
  // What plans are chosen by: see planForTarget().
  auto time = [&](const FrontPoint &point) {
    return dag.spmd ? point.makespanUs : point.contendedUs;
  };
  uint64_t limit = 0;
  std::string stopped;
  do {
    auto plan = planForMachine(dag, machine, options, workspace, limit);
    if (!plan && (front.empty() || plan.error().kind != ErrorKind::Invalid))
      return fail(plan.error());
    if (!plan) {
      stopped = plan.error().message;
      break;
    }
    FrontPoint point{memoryOf(*plan, plan->dag ? *plan->dag : dag) + workspace,
                     plan->plan.makespanUs, plan->contendedUs,
                     plan->plan.lowerBoundUs, plan->plan.transforms};
    limit = uint64_t(double(point.memory) * step);
    while (!front.empty() && time(front.back()) >= time(point))
      front.pop_back();
    front.push_back(std::move(point));
  } while (limit > 0);
  if (options.json) {
    json rows = json::array();
    for (const FrontPoint &point : front)
      rows.push_back({{"memory_bytes", point.memory},
                      {"makespan_us", point.makespanUs},
                      {"contended_makespan_us", point.contendedUs},
                      {"lower_bound_us", point.lowerBoundUs},
                      {"transforms", point.transforms}});
    fmt::print("{}\n",
               json{{"front", std::move(rows)}, {"below", stopped}}.dump(
                   2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{:>16}  {:>14}  {:>9}  {:>18}  transforms\n", "memory (bytes)",
             "makespan (us)", "more", "with contention");
  for (const FrontPoint &point : front) {
    double least = time(front.front());
    fmt::print("{:>16}  {:>14.3f}  {:>+7.2f} %  {:>18.3f}  {}\n", point.memory,
               point.makespanUs,
               least > 0 ? 100 * (time(point) / least - 1) : 0,
               point.contendedUs,
               point.transforms.empty()
                   ? "none"
                   : fmt::format("{}", fmt::join(point.transforms, " ")));
  }
  if (!stopped.empty())
    fmt::print("below: {}\n", stopped);
  return 0;
}

/// Plans the changed program on the changed machine and prints both. `plan` is
/// of `planned`.
static Result<void>
runWhatIf(const planner::Dag &dag, const planner::TopologyEstimator &machine,
          const planner::TargetPlan &plan, const planner::Dag &planned,
          const Options &options, uint64_t workspace, json *out) {
  MGPU_TRY_ASSIGN(planner::WhatIf changed,
                  planner::applyWhatIf(options.whatIf, machine, dag, planned));
  planner::TopologyEstimator other = machine.on(std::move(changed.topology));
  MGPU_TRY_ASSIGN(auto then, planForMachine(changed.dag, other, options,
                                            workspace, 0, changed.made));
  std::vector<std::string> absent; // what the new plan was not made to have
  for (const planner::OpFactor &op : changed.made)
    if (const planner::Dag &made = then.dag ? *then.dag : changed.dag;
        std::none_of(made.nodes.begin(), made.nodes.end(),
                     [&](const planner::DagNode &node) {
                       return op.matches(node.name);
                     }))
      absent.push_back(op.pattern);
  auto percent = [](double from, double to) {
    return from > 0 ? 100 * (to / from - 1) : 0;
  };
  if (out)
    (*out)["what_if"] = {{"changes", options.whatIf},
                         {"makespan_us", then.plan.makespanUs},
                         {"lower_bound_us", then.plan.lowerBoundUs},
                         {"contended_makespan_us", then.contendedUs},
                         {"scaled", changed.scaled},
                         {"absent", absent}};
  else
    fmt::print("what if {}: makespan {:.3f} -> {:.3f} us ({:+.2f} %), bound "
               "{:.3f} -> {:.3f} us, with contention {:.3f} -> {:.3f} us "
               "({:+.2f} %)\n",
               fmt::join(options.whatIf, ", "), plan.plan.makespanUs,
               then.plan.makespanUs,
               percent(plan.plan.makespanUs, then.plan.makespanUs),
               plan.plan.lowerBoundUs, then.plan.lowerBoundUs, plan.contendedUs,
               then.contendedUs, percent(plan.contendedUs, then.contendedUs));
  if (!out && changed.scaled > 0)
    fmt::print("  {} durations of the file, scaled as estimated on both "
               "machines (assumed)\n",
               changed.scaled);
  if (!out)
    for (const std::string &name : absent)
      fmt::print("  its plan is better off without {}\n", name);
  return {};
}

constexpr uint32_t noisePlays = 400;

/// The median and the 95th percentile of the makespan.
static std::pair<double, double>
playWithNoise(const planner::Plan &plan, const planner::Dag &dag,
              const planner::TopologyEstimator &machine,
              const Options &options) {
  std::vector<double> plays = planner::simulateNoise(
      plan, dag, planner::contentionOf(machine.machine()),
      options.noisePercent / 100, noisePlays, options.seed);
  return {plays[plays.size() / 2], plays[plays.size() * 95 / 100]};
}

/// Options that only make sense for a machine that is not here.
static Result<void> refuseSimOptions(const Options &options) {
  const char *given = options.given.count("--budget")    ? "--budget"
                      : !options.memory.empty()          ? "--memory"
                      : !options.collectivesFile.empty() ? "--collectives"
                      : !options.whatIf.empty()          ? "--what-if"
                      : options.noisePercent > 0         ? "--noise"
                      : options.pareto                   ? "--pareto"
                                                         : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("{} is for targets sim:NAME; the host is what it "
                            "is",
                            given));
  return {};
}

/// Options of one plan, beside one that makes many.
static Result<void> refuseBesidePareto(const Options &options) {
  const char *given = !options.whatIf.empty()      ? "--what-if"
                      : options.explain            ? "--explain"
                      : options.noisePercent > 0   ? "--noise"
                      : !options.dotFile.empty()   ? "--dot"
                      : !options.traceFile.empty() ? "--trace"
                      : !options.svgFile.empty()   ? "--svg"
                      : !options.planFile.empty()  ? "-o"
                                                   : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("--pareto makes several plans and {} is of one: "
                            "plan again with the --memory of a row",
                            given));
  return {};
}

Result<int> runPlan(const Options &options) {
  if (options.pareto)
    MGPU_TRY(refuseBesidePareto(options));
  MGPU_TRY(checkFiles(options));
  const bool isElsewhere = options.target.starts_with("sim:");
  MGPU_TRY_ASSIGN(Program program,
                  loadProgram(options, false, nullptr,
                              !isElsewhere && looksForTuned(options)));
  planner::Plan plan;
  std::optional<planner::TopologyEstimator> machine;
  std::optional<planner::TargetPlan> target;
  uint32_t threads = 0;   // that replay it on the host, where that is known
  planner::Dag source;    // of --what-if: before the transforms
  uint64_t workspace = 0; // of each device of a machine, for cuBLASLt
  if (isElsewhere) {
    MGPU_TRY_ASSIGN(machine, openMachine(options));
    if (options.given.count("--seed") && !program.dag.spmd &&
        options.noisePercent == 0)
      return fail(ErrorKind::Usage,
                  "--seed: nothing of this plan is random: give --noise, or "
                  "leave it out");
    workspace = productWorkspace(program, options.streams);
    if (options.pareto)
      return runPareto(program.dag, *machine, options, workspace);
    if (!options.whatIf.empty())
      source = program.dag;
    MGPU_TRY_ASSIGN(target,
                    planForMachine(program.dag, *machine, options, workspace));
    plan = target->plan;
    if (target->dag)
      program.dag = std::move(*target->dag);
  } else {
    MGPU_TRY(refuseSimOptions(options));
    MGPU_TRY(checkSeed(options));
    if (!options.target.empty()) // its rates are the model's
      MGPU_TRY(targetDevices(options.target, program.dag.numDevices));
    MGPU_TRY_ASSIGN(auto choice, findTuned(program, options));
    if (choice) {
      MGPU_TRY_ASSIGN(const std::string path,
                      db::databasePath(options.database));
      MGPU_TRY(transformChosen(program, *choice));
      MGPU_TRY_ASSIGN(plan, planChosen(program.dag, *choice, path));
      threads = choice->config.lanes;
    } else {
      MGPU_TRY_ASSIGN(plan, planOf(program, options));
    }
  }
  if (!options.dotFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.dotFile, planner::toDot(plan, program.dag)));
  if (!options.traceFile.empty())
    MGPU_TRY(writeFileAtomic(options.traceFile,
                             planner::toChromeTrace(plan, program.dag)));
  if (!options.svgFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.svgFile, planner::toSvg(plan, program.dag)));
  if (!options.planFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.planFile, planner::toText(plan, program.dag)));
  std::optional<std::pair<double, double>> noise;
  if (target && options.noisePercent > 0)
    noise = playWithNoise(plan, program.dag, *machine, options);
  if (options.json) {
    json out = toJson(plan, program.dag,
                      target ? target->algorithms
                             : std::vector<planner::AlgorithmChoice>());
    if (noise)
      out["noise"] = {{"percent", options.noisePercent},
                      {"p50_us", noise->first},
                      {"p95_us", noise->second}};
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
    if (!options.whatIf.empty())
      MGPU_TRY(runWhatIf(source, *machine, *target, program.dag, options,
                         workspace, &out));
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  if (!options.whatIf.empty())
    MGPU_TRY(runWhatIf(source, *machine, *target, program.dag, options,
                       workspace, nullptr));
  std::string recorded;
  if (noise)
    recorded = fmt::format(
        "with durations that vary by {} %: {:.3f} us in half "
        "of {} plays, {:.3f} us in 95 % (with contention)\n",
        options.noisePercent, noise->first, noisePlays, noise->second);
  if (program.recordedUs > 0)
    recorded += fmt::format(
        "recorded: {:.3f} us; in this order: {:.3f} us ({:+.2f} %), bound "
        "{:.3f} us\n",
        program.recordedUs, plan.makespanUs,
        100 * (plan.makespanUs / program.recordedUs - 1), plan.lowerBoundUs);
  if (options.explain) {
    fmt::print("{}{}", recorded, planner::explain(plan, program.dag));
    for (const std::string &reason : program.notFused)
      fmt::print("not fused: {}\n", reason);
    if (workspace > 0)
      fmt::print("of the memory of each device, {} bytes are kept for "
                 "cuBLASLt's workspaces\n",
                 workspace);
    if (threads > 0)
      fmt::print("a replay on {} of this machine: {:.3f} us ({})\n",
                 counted(threads, "thread"),
                 planner::hostReplayUs(plan, program.dag, threads), plan.model);
    if (target)
      fmt::print("{}", explainModel(*target, program.dag, *machine));
    return 0;
  }
  if (options.planFile.empty() && options.whatIf.empty()) {
    fmt::print(stderr, "{}", recorded);
    fmt::print("{}", planner::toText(plan, program.dag));
    return 0;
  }
  fmt::print("{}", recorded);
  fmt::print("{}: makespan {:.3f} us, bound {:.3f} us ({}){}\n", plan.scheduler,
             plan.makespanUs, plan.lowerBoundUs, plan.model,
             options.planFile.empty() ? ""
                                      : ", written to " + options.planFile);
  return 0;
}

} // namespace mgpu::tune
