// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/PlanProgram.h"

#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/WhatIf.h"
#include "support/Spelling.h"

#include <algorithm>

namespace mgpu::pipeline {

MachineRequest requestOf(const PlanRequest &options, PlanReport &report) {
  return {options.prepare, &report.machine, report.workspace};
}

/// Takes what `tune` found of the program here; false where there is nothing.
static Result<bool> takeTuned(LoadedProgram &program,
                              const PlanRequest &options, PlanReport &report) {
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options.prepare));
  if (!choice)
    return false;
  MGPU_TRY(transformChosen(program, *choice));
  MGPU_TRY_ASSIGN(const planner::Machine machine, machineOf(program, *choice));
  MGPU_TRY_ASSIGN(report.plan, tuner::planOf(program.dag, choice->config,
                                             machine, choice->isTuned));
  report.predicted =
      planner::predictReplay(report.plan, program.dag, choice->config.threads);
  return true;
}

/// Plans for the target. `program` is left as the plan's transforms change it.
static Result<void> planTarget(LoadedProgram &program,
                               const PlanRequest &options, PlanReport &report) {
  const std::string &target = program.from.target;
  if (!isElsewhere(target)) {
    MGPU_TRY(checkScheduler(options.prepare, program.from.given));
    if (!target.empty())
      MGPU_TRY(targetDevices(target, program.dag.numDevices));
    MGPU_TRY_ASSIGN(const bool isTuned, takeTuned(program, options, report));
    if (isTuned)
      return {};
  }
  MGPU_TRY_ASSIGN(planner::TargetPlan made,
                  makePlan(program, requestOf(options, report)));
  report.plan = made.plan;
  if (!isElsewhere(target))
    report.predicted = planner::predictReplay(
        report.plan, program.dag, threadsFor(report.plan, program.dag));
  if (!report.machine)
    return {}; // it was stored
  report.target = std::move(made);
  if (options.noisePercent > 0) {
    std::vector<double> plays = planner::simulateNoise(
        report.plan, program.dag,
        planner::contentionOf(report.machine->topology()),
        options.noisePercent / 100, noisePlays, options.prepare.seed);
    report.noise = {plays[plays.size() / 2], plays[plays.size() * 95 / 100]};
  }
  return {};
}

/// Kernels of a device run one at a time in a plan, and may have run at the
/// same time in a recording: no bound is above what was recorded.
static void boundByRecording(PlanReport &report, double recordedUs) {
  if (recordedUs > 0) // of whatever GPU that was
    report.plan.model = "recorded durations";
  if (recordedUs <= 0 || report.plan.lowerBoundUs <= recordedUs)
    return;
  report.plan.lowerBoundUs = recordedUs;
  report.plan.boundBy = planner::BoundArgument::Unknown;
  if (report.bound)
    report.bound->words.clear();
}

/// Plans `source`, the program before its plan's transforms, as --what-if
/// changes it and the machine.
static Result<void> planWhatIf(LoadedProgram source,
                               const planner::Dag &planned,
                               const PlanRequest &options, PlanReport &report) {
  MGPU_TRY_ASSIGN(
      planner::WhatIf changed,
      applyWhatIf(options.whatIf, *report.machine, source.dag, planned));
  std::optional<planner::Machine> other =
      report.machine->on(std::move(changed.topology));
  source.dag = std::move(changed.dag);
  ChangedPlan &out = report.changed.emplace();
  MGPU_TRY_ASSIGN(out.plan, makePlan(source, {options.prepare, &other,
                                              report.workspace, changed.made}));
  out.scaled = changed.scaled;
  for (const planner::OpFactor &op : changed.made)
    if (std::ranges::none_of(source.dag.nodes,
                             [&](const planner::DagNode &node) {
                               return matchesPattern(op.pattern, node.name);
                             }))
      out.absent.push_back(op.pattern);
  return {};
}

Result<void> planProgram(LoadedProgram &program, const PlanRequest &options,
                         PlanReport &report) {
  const PlanReport before = report;
  PlanReport made;
  std::optional<LoadedProgram> source, kept;
  auto planOf = [&](LoadedProgram &ordered) -> Result<double> {
    made = before;
    if (!options.whatIf.empty())
      source = ordered;
    MGPU_TRY(planTarget(ordered, options, made));
    boundByRecording(made, ordered.recordedUs);
    return made.plan.makespanUs;
  };
  auto keep = [&] {
    report = std::move(made);
    kept = std::move(source);
  };
  if (options.shardings > 0) {
    MGPU_TRY_ASSIGN(ShardingChoice shardings,
                    chooseShardings(program, options.shardings,
                                    options.prepare.seed, planOf, keep));
    report.shardings = std::move(shardings);
    return {};
  }
  MGPU_TRY_ASSIGN(OrderChoice order, chooseOrder(program, planOf, keep));
  report.order = std::move(order);
  return kept ? planWhatIf(std::move(*kept), program.dag, options, report)
              : Result<void>();
}

} // namespace mgpu::pipeline
