// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune plan`.
#include "device/api/Topology.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/overlap/OverlapPlanner.h"
#include "support/FileIO.h"
#include "support/Units.h"
#include "tools/mgpu-tune/Program.h"
#include "tools/mgpu-tune/Target.h"

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

/// A machine that is not here: the search under its memory, of DAGs whose
/// durations are in the file.
static Result<planner::Plan> planForTopology(const planner::Dag &dag,
                                             const Options &options) {
  using namespace planner;
  if (options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--scheduler {} is for the host; sim targets are "
                            "planned by search",
                            options.scheduler));
  MGPU_TRY_ASSIGN(device::Topology topology,
                  device::openTopology(options.target));
  if (dag.numDevices > topology.devices)
    return fail(ErrorKind::Absent,
                fmt::format("the program uses {} devices, {} has {}",
                            dag.numDevices, topology.name, topology.devices));
  uint64_t memory = topology.device.memoryBytes;
  if (!options.memory.empty()) {
    MGPU_TRY_ASSIGN(memory, parseByteSize(options.memory, "--memory"));
  }
  MGPU_TRY_ASSIGN(SearchBudget budget, parseBudget(options.budget));
  MGPU_TRY_ASSIGN(auto model, overlap::OverlapModel::create(dag));
  rcpsp::Budget search(budget.seconds, budget.evaluations);
  MGPU_TRY_ASSIGN(auto outcome, overlap::planOverlap(dag, model, memory,
                                                     options.seed, search));
  return std::move(outcome.plan);
}

Result<int> runPlan(const Options &options) {
  for (const std::string *file :
       {&options.dotFile, &options.traceFile, &options.planFile})
    if (!file->empty())
      MGPU_TRY(checkOutputPath(*file));
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  planner::Plan plan;
  if (options.target.starts_with("sim:")) {
    MGPU_TRY_ASSIGN(plan, planForTopology(program.dag, options));
  } else {
    if (!options.memory.empty())
      return fail(ErrorKind::Usage,
                  "--memory is for targets sim:NAME; the host "
                  "has the memory it has");
    if (!options.target.empty()) // its rates are the model's
      MGPU_TRY(openTarget(options.target, program.dag.numDevices));
    MGPU_TRY_ASSIGN(plan, planOf(program, options));
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
    fmt::print("{}\n", toJson(plan, program.dag).dump(2));
    return 0;
  }
  if (options.explain) {
    fmt::print("{}", planner::explain(plan, program.dag));
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
