// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune plan`.
#include "device/api/Topology.h"
#include "planner/schedule/TargetPlan.h"
#include "planner/schedule/Timeline.h"
#include "support/FileIO.h"
#include "support/Units.h"
#include "tools/mgpu-tune/Program.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace mgpu::tune {

using nlohmann::json;

static json toJson(const planner::Plan &plan, const planner::Dag &dag) {
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
           {"verified", true}};
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

static Result<planner::TargetPlan>
planForMachine(const planner::Dag &dag,
               const planner::TopologyEstimator &machine,
               const Options &options) {
  using namespace planner;
  if (options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--scheduler {} is for the host; sim targets are "
                            "planned by search",
                            options.scheduler));
  TargetOptions target;
  MGPU_TRY_ASSIGN(target.memoryBytes,
                  memoryLimit(machine.machine(), options.memory));
  target.streamsPerDevice = options.streams;
  target.seed = options.seed;
  MGPU_TRY_ASSIGN(SearchBudget budget, parseBudget(options.budget));
  rcpsp::Budget search(budget.seconds, budget.evaluations);
  return planForTarget(dag, machine, target, search);
}

Result<int> runPlan(const Options &options) {
  for (const std::string *file :
       {&options.dotFile, &options.traceFile, &options.planFile})
    if (!file->empty())
      MGPU_TRY(checkOutputPath(*file));
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  planner::Plan plan;
  std::optional<planner::TopologyEstimator> machine;
  std::optional<planner::TargetPlan> target;
  if (options.target.starts_with("sim:")) {
    MGPU_TRY_ASSIGN(machine, openMachine(options));
    MGPU_TRY_ASSIGN(target, planForMachine(program.dag, *machine, options));
    plan = target->plan;
  } else {
    if (!options.memory.empty())
      return fail(ErrorKind::Usage,
                  "--memory is for targets sim:NAME; the host "
                  "has the memory it has");
    if (!options.collectivesFile.empty())
      return fail(ErrorKind::Usage, "--collectives is for targets sim:NAME");
    if (!options.target.empty()) // its rates are the model's
      MGPU_TRY(targetDevices(options.target, program.dag.numDevices));
    MGPU_TRY_ASSIGN(auto choice, findTuned(program, options));
    if (choice && choice->isTuned) {
      MGPU_TRY_ASSIGN(plan, tuner::planFor(program.dag, choice->config));
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
  if (!options.planFile.empty())
    MGPU_TRY(
        writeFileAtomic(options.planFile, planner::toText(plan, program.dag)));
  if (options.json) {
    json out = toJson(plan, program.dag);
    if (target) {
      out["contended_makespan_us"] = target->contendedUs;
      out["contended_serial_us"] = target->serialUs;
    }
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  if (options.explain) {
    fmt::print("{}", planner::explain(plan, program.dag));
    if (target)
      fmt::print("{}", explainModel(*target, program.dag, *machine));
    return 0;
  }
  if (options.planFile.empty()) {
    fmt::print("{}", planner::toText(plan, program.dag));
    return 0;
  }
  fmt::print("{}: makespan {:.3f} us, bound {:.3f} us ({}), written to {}\n",
             plan.scheduler, plan.makespanUs, plan.lowerBoundUs, plan.model,
             options.planFile);
  return 0;
}

} // namespace mgpu::tune
