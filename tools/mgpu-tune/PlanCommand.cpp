// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune plan`.
#include "pipeline/build/Kernels.h"
#include "pipeline/program/Load.h"
#include "pipeline/program/Roles.h"
#include "pipeline/run/Distributed.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "planner/dagfile/DagJson.h"
#include "planner/plan/PlanDiff.h"
#include "planner/schedule/Timeline.h"
#include "support/FileIO.h"
#include "support/FileNames.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"
#include "tools/mgpu-tune/PlanReport.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

namespace {

/// Whether the plan has to be made for the machine, so that neither one that
/// was stored nor one that `tune` found will do.
bool asksOfMachine(const PlanCommandOptions &options) {
  return !options.prepare.memory.empty() || !options.prepare.budget.empty() ||
         !options.prepare.collectivesFile.empty() || !options.whatIf.empty() ||
         options.noisePercent > 0 || options.pareto || options.shardings > 0 ||
         options.load.oneDevice;
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
                      : !options.distributed.empty()     ? "--distributed"
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
                      : !options.distributed.empty()     ? "--distributed"
                                                         : nullptr;
  if (given)
    return fail(ErrorKind::Usage,
                fmt::format("--shardings prints a program: plan that one for "
                            "{}",
                            given));
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
    if (dag.spmd)
      return fail(ErrorKind::Unsupported,
                  "--dag: what is planned is a DAG file that is spmd already; "
                  "leave it out");
    MGPU_TRY(
        writeFileAtomic(options.dagFile,
                        planner::programJsonText(dag, durationsOf(plan, dag))));
  }
  if (!options.output.empty() && options.output != standardOutput)
    MGPU_TRY(writeFileAtomic(options.output, planner::toText(plan, dag)));
  return {};
}

/// Proves the plan's bound, to write or explain it.
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

/// Files that are written must not be read.
Result<void> checkFiles(const PlanCommandOptions &options) {
  FileUses uses = filesRead(
      options.load, {{"--collectives", options.prepare.collectivesFile}});
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

/// All ranks prove rank 0's plan, and compare what they have.
Result<void> sharePlan(LoadedProgram &program, const planner::Plan &plan) {
  Prepared prepared;
  prepared.plan = plan;
  return sharePrepared(program.dag, prepared, *theRanks());
}

/// Takes part as another rank than 0, which alone plans and prints.
Result<int> followPlan(LoadedProgram &program) {
  MGPU_TRY(sharePlan(program, {}));
  return 0;
}

} // namespace

/// A machine that is not here, as it is known before the program is.
static Result<void> readMachine(LoadOptions &load, const PlanOptions &options,
                                PlanReport &report) {
  if (!isElsewhere(load.target))
    return {};
  MGPU_TRY_ASSIGN(
      report.machine,
      openMachine(load.target, 1, options.collectivesFile, load.database));
  load.machine = std::make_shared<const planner::Machine>(*report.machine);
  return {};
}

Result<int> runPlan(const PlanCommandOptions &asked) {
  PlanCommandOptions options = asked;
  if (options.pareto)
    MGPU_TRY(refuseBesidePareto(options));
  MGPU_TRY(checkDeadline(options, options.load));
  if (options.shardings > 0)
    MGPU_TRY(refuseBesideShardings(options));
  MGPU_TRY(checkFiles(options));
  LoadOptions &load = options.load;
  const bool isAway = isElsewhere(load.target),
             onGpu = isAway || isCudaTarget(load.target);
  options.prepare.isChosen |= asksOfMachine(options);
  options.prepare.streams = streamsOf(load.target, options.prepare.streams);
  load.usesRecord = options.prepare.useTuned && options.output.empty();
  load.kernelTexts = !isAway && looksForTuned(load, options.prepare);
  load.keepText = options.shardings > 0;
  load.productTexts = onGpu; // the workspaces take of its memory
  PlanReport report;
  MGPU_TRY(readMachine(load, options.prepare, report));
  MGPU_TRY(joinAsked(options));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  if (theRanks())
    MGPU_TRY(agreeOnProgram(program.dag, *theRanks(), factsOf(load)));
  if (!isFirstRank())
    return followPlan(program);
  if (isAway && load.given.contains("--seed") && !program.dag.spmd &&
      options.noisePercent == 0 && options.shardings == 0 &&
      options.prepare.scheduler != "shuffled")
    return fail(ErrorKind::Usage,
                "--seed: nothing of this plan is random: give --noise, or "
                "leave it out");
  if (onGpu)
    report.workspace = productWorkspace(program, options.prepare.streams);
  if (options.pareto) {
    MGPU_TRY_ASSIGN(const Front front,
                    makeFrontOfOrders(program, requestOf(options, report)));
    printFront(front, options.json);
    return 0;
  }
  MGPU_TRY(planProgram(program, options, report));
  if (theRanks())
    MGPU_TRY(sharePlan(program, report.plan));
  MGPU_TRY(writeFiles(report.plan, program.dag, program.meshes, options));
  MGPU_TRY(proveBound(report, program.dag, options));
  if (options.json)
    printJson(report, program, options);
  else
    printText(report, program, options);
  return 0;
}

// `mgpu-tune compare A.plan B.plan`.

using nlohmann::json;

static Result<planner::PlanAlone> readAlone(const std::string &path) {
  static constexpr uint64_t mostText = uint64_t(1) << 30;
  MGPU_TRY(checkReadable(path));
  MGPU_TRY_ASSIGN(std::string text, readText(path, mostText));
  auto plan = planner::parsePlanAlone(text);
  if (!plan)
    return failIn(fmt::format("{}: ", path), plan.error());
  return plan;
}

Result<int> runPlanDiff(const CompareOptions &options) {
  if (options.a == "default" || options.a == "serial" || options.a == "tuned" ||
      options.a.ends_with(".db"))
    return fail(ErrorKind::Usage,
                fmt::format("compare {0} {1} lacks B: give `compare FILE A B` "
                            "for a program, as `compare {0} {1} tuned`, or "
                            "two plans",
                            options.load.file, options.a));
  MGPU_TRY_ASSIGN(planner::PlanAlone a, readAlone(options.load.file));
  MGPU_TRY_ASSIGN(planner::PlanAlone b, readAlone(options.a));
  planner::PlanDiff diff = planner::diffPlans(a, b);
  if (!options.json) {
    if (a.plan.model != b.plan.model)
      fmt::print("durations: {} -> {}\n", a.plan.model, b.plan.model);
    fmt::print("{}", toText(diff));
    return 0;
  }
  json changes = json::array();
  for (const planner::StepChange &change : diff.changes)
    changes.push_back({{"name", change.name},
                       {"phase_start_us", {change.aStartUs, change.bStartUs}},
                       {"duration_change_us", change.durationUs},
                       {"other_streams", change.hasOtherStreams}});
  json out{{"models", {a.plan.model, b.plan.model}},
           {"transforms", {a.plan.transforms, b.plan.transforms}},
           {"error", {diff.aError, diff.bError}},
           {"load_us", {diff.aLoadUs, diff.bLoadUs}},
           {"replay_us", {diff.aMakespanUs, diff.bMakespanUs}},
           {"fetch_us", {diff.aFetchUs, diff.bFetchUs}},
           {"replay_bound_us", {diff.aLowerBoundUs, diff.bLowerBoundUs}},
           {"largest_arena_bytes", {diff.aArenaBytes, diff.bArenaBytes}},
           {"waits", {diff.aWaits, diff.bWaits}},
           {"same", diff.same},
           {"changed", std::move(changes)},
           {"gone", diff.onlyInA},
           {"new", diff.onlyInB}};
  tools::printJson(out);
  return 0;
}

} // namespace mgpu::tools
