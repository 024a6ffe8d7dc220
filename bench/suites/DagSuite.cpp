// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/ScheduleSuite.h"
#include "planner/dagfile/DagJson.h"
#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "support/FileIO.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::bench {

using namespace planner;

static std::string planJson(const TargetPlan &planned, const Dag &dag) {
  const OverlapOutcome &outcome = *planned.overlap;
  const planner::Problem &problem = outcome.problem;
  // A node's output is the first buffer it writes.
  std::vector<uint64_t> offsets(dag.buffers.size(), 0);
  for (const Placement &placement : planned.plan.placements)
    offsets[placement.buffer.value] = placement.offset;
  nlohmann::json nodes = nlohmann::json::array();
  for (uint32_t i = 0; i < problem.size(); ++i) {
    nlohmann::json offset = nullptr;
    for (const BufferUse &use : dag.nodes[i].uses)
      if (use.writes) {
        offset = offsets[use.buffer.value];
        break;
      }
    double start = outcome.schedule.starts[i];
    nodes.push_back({{"id", i},
                     {"start_us", start},
                     {"end_us", start + problem.durations[i]},
                     {"stream", isCollective(problem, i) ? 1 : 0},
                     {"offset", std::move(offset)}});
  }
  nlohmann::json out{{"format", "mgpu-timed-plan/1"},
                     {"dag", dag.name},
                     {"makespan_us", outcome.schedule.makespan},
                     {"arena_bytes", planned.plan.arenaBytes[0]},
                     {"resident_bytes", dag.residentBytes},
                     {"nodes", std::move(nodes)}};
  return out.dump() + "\n";
}

/// A plan, and how long making it took.
struct Outcome {
  const Dag &dag; ///< as the transforms left it
  const TargetPlan &planned;
  const std::string &machine;
  size_t sourceNodes;
  double loadSeconds;
  uint64_t memoryLimit, schedules;

  std::optional<double> hidden() const {
    return hiddenShare(planned.overlap->problem, planned.plan.lowerBoundUs,
                       planned.overlap->schedule.makespan);
  }
};

static nlohmann::json resultJson(const Outcome &outcome,
                                 const DagOptions &options, uint64_t seed) {
  const auto &[dag, planned, machine, sourceNodes, loadSeconds, limit,
               schedules] = outcome;
  const OverlapOutcome &best = *planned.overlap;
  const double bound = best.certificate.boundUs;
  const std::optional<double> hidden = outcome.hidden();
  nlohmann::json transforms = nlohmann::json::array();
  for (const TransformGain &gain : planned.gains)
    transforms.push_back({{"name", toString(gain.transform)},
                          {"changes", gain.changes},
                          {"makespan_before_us", gain.beforeUs},
                          {"makespan_after_us", gain.afterUs},
                          {"kept", gain.isKept},
                          {"left", gain.left}});
  uint64_t arenaBound =
      layoutArena(planned.plan, dag).lowerBoundBytes[0] + dag.residentBytes;
  return {{"dag", dag.name},
          {"target", machine},
          {"model", planned.dag ? planned.plan.model : options.model},
          {"nodes", dag.nodes.size()},
          {"source_nodes", sourceNodes},
          {"transforms", std::move(transforms)},
          {"load_seconds", loadSeconds},
          {"first_plan_seconds", best.firstSeconds},
          {"makespan_us", best.schedule.makespan},
          {"lower_bound_us", bound},
          {"bound_by", toString(planned.plan.boundBy)},
          {"ratio", best.schedule.makespan / bound},
          {"contended_makespan_us", planned.contendedUs},
          {"kernels_us", workOf(best.problem, FrozenResource::Kernels)},
          {"collectives_us", workOf(best.problem, FrozenResource::Collectives)},
          {"hidden_share", hidden ? nlohmann::json(*hidden) : nlohmann::json()},
          {"peak_memory_bytes", best.peakBytes},
          {"arena_bytes", planned.plan.arenaBytes[0] + dag.residentBytes},
          {"arena_bound_bytes", arenaBound},
          {"memory_limit_bytes", limit},
          {"schedules", schedules},
          {"seed", seed},
          {"verified", true}};
}

static void printResult(const Outcome &outcome) {
  const auto &[dag, planned, machine, sourceNodes, loadSeconds, limit,
               schedules] = outcome;
  const OverlapOutcome &best = *planned.overlap;
  const double bound = best.certificate.boundUs;
  const std::optional<double> hidden = outcome.hidden();
  for (const TransformGain &gain : planned.gains)
    if (gain.changes > 0)
      fmt::print("{}: {} changes, makespan {:.1f} -> {:.1f} us, {}\n",
                 toString(gain.transform), gain.changes, gain.beforeUs,
                 gain.afterUs, gain.isKept ? "kept" : "not kept");
  fmt::print(
      "{}: makespan {:.1f} us, bound {:.1f} us, ratio {:.5f} ({}), "
      "hidden {}, peak {:.3f} GB, arena {:.3f} GB, first plan {:.3f} s\n",
      dag.name, best.schedule.makespan, bound, best.schedule.makespan / bound,
      planned.plan.boundVerdict(),
      hidden ? fmt::format("{:.2f} %", *hidden * 100) : "all",
      double(best.peakBytes) / 1e9,
      double(planned.plan.arenaBytes[0] + dag.residentBytes) / 1e9,
      best.firstSeconds);
  fmt::print("  bound by {}: {}\n", toString(planned.plan.boundBy),
             explainBound(best.certificate, best.problem));
}

Result<int> runDag(const DagOptions &options, const CommonOptions &common) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  if (options.model != "frozen")
    return fail(ErrorKind::Unsupported,
                fmt::format("model \"{}\" is not known; this version plans "
                            "DAGs under \"frozen\"",
                            options.model));
  MGPU_TRY_ASSIGN(device::Topology topology,
                  device::openTopology(options.target));
  MGPU_TRY_ASSIGN(uint64_t limit, memoryLimit(topology, options.memory));
  auto loading = Clock::now();
  MGPU_TRY_ASSIGN(Dag dag, readDagJson(options.file));
  double loadSeconds = seconds(loading);
  for (const DagNode &node : dag.nodes)
    if (!node.durationUs)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: node \"{}\" has no duration_us, which model "
                              "frozen needs of every node",
                              options.file, node.name));
  exact::Budget budget(common.seconds, UINT64_MAX, common.clock);
  Machine machine(std::move(topology));
  PlanRequest target;
  target.memoryBytes = limit;
  target.seed = common.seed;
  target.scaleComm = options.scaleComm;
  MGPU_TRY_ASSIGN(TransformChoice choice, parseTransforms(options.transforms));
  target.transforms = std::move(choice.transforms);
  target.schedulePolicy = choice.schedulePolicy;
  if (!dag.spmd)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} is not spmd; model frozen plans one device "
                            "that stands for all",
                            options.file));
  MGPU_TRY_ASSIGN(TargetPlan planned, makePlan(dag, machine, target, &budget));
  size_t sourceNodes = dag.nodes.size();
  if (planned.dag)
    dag = std::move(*planned.dag);
  if (!options.planOut.empty())
    MGPU_TRY(writeFileAtomic(options.planOut, planJson(planned, dag)));
  if (!options.dagOut.empty()) {
    MGPU_TRY_ASSIGN(std::string text, dagJsonText(dag));
    MGPU_TRY(writeFileAtomic(options.dagOut, text));
  }
  const Outcome outcome{
      dag,         planned, machine.topology().name, sourceNodes,
      loadSeconds, limit,   budget.spentNodes()};
  if (common.json)
    fmt::print("{}\n", resultJson(outcome, options, common.seed).dump(1));
  else
    printResult(outcome);
  return 0;
}

} // namespace mgpu::bench
