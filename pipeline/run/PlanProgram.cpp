// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/PlanProgram.h"

#include "pipeline/program/CheckAlike.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/Workers.h"
#include "planner/schedule/Simulate.h"

namespace mgpu::pipeline {

MachineRequest requestOf(const LoadedProgram &program,
                         const PlanRequest &options, const PlanReport &report) {
  return {*report.machine, options.prepare, !isElsewhere(program.from.target),
          report.workspace};
}

/// Takes what `tune` found of the program here; false where there is nothing.
static Result<bool> takeTuned(LoadedProgram &program,
                              const PlanRequest &options, PlanReport &report) {
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options.prepare));
  if (!choice)
    return false;
  MGPU_TRY(transformChosen(program, *choice));
  MGPU_TRY_ASSIGN(report.plan, makePlan(program, *choice));
  report.threads = choice->config.threads;
  return true;
}

/// Plans for the target. `program` is left as the plan's transforms change it.
static Result<void> planTarget(LoadedProgram &program,
                               const PlanRequest &options, PlanReport &report) {
  const std::string &target = program.from.target;
  if (!isElsewhere(target)) {
    MGPU_TRY(checkSeed(options.prepare, program.from.given));
    if (!target.empty())
      MGPU_TRY(targetDevices(target, program.dag.numDevices));
    MGPU_TRY_ASSIGN(const bool isTuned, takeTuned(program, options, report));
    if (isTuned)
      return {};
    MGPU_TRY_ASSIGN(auto stored, storedPlan(program, options.prepare));
    if (stored) {
      report.plan = std::move(*stored);
      return {};
    }
  }
  if (!report.machine) {
    MGPU_TRY_ASSIGN(report.machine, openMachine(target, program.dag.numDevices,
                                                options.prepare.collectivesFile,
                                                program.from.database));
  }
  const device::Topology &topology = report.machine->topology();
  if (program.from.oneDevice)
    MGPU_TRY(checkAlike(program.dag, topology.devicesPerNode()));
  if (!options.whatIf.empty())
    report.source = program.dag;
  MGPU_TRY_ASSIGN(report.target,
                  makePlan(program.dag, requestOf(program, options, report)));
  report.plan = report.target->plan;
  if (report.target->dag)
    program.dag = std::move(*report.target->dag);
  if (!isElsewhere(target))
    report.predicted =
        planner::predictReplay(report.plan, program.dag, *report.machine,
                               threadsFor(report.plan, program.dag));
  if (options.noisePercent > 0) {
    std::vector<double> plays = planner::simulateNoise(
        report.plan, program.dag, planner::contentionOf(topology),
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

Result<void> planProgram(LoadedProgram &program, const PlanRequest &options,
                         PlanReport &report) {
  const PlanReport before = report;
  PlanReport made;
  auto planOf = [&](LoadedProgram &ordered) -> Result<double> {
    made = before;
    MGPU_TRY(planTarget(ordered, options, made));
    boundByRecording(made, ordered.recordedUs);
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

} // namespace mgpu::pipeline
