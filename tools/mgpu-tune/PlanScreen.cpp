// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the result of `plan` for people.
#include "pipeline/program/Roles.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/PipelineReport.h"
#include "planner/schedule/Timeline.h"
#include "support/Units.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/PlanReport.h"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace mgpu::tools {

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
