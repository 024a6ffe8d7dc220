// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/plan/ProgramPlan.h"

#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/WhatIf.h"
#include "support/FileIO.h"
#include "support/Spelling.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

using namespace planner;

Result<void> checkSeed(const PlanOptions &options,
                       const std::set<std::string> &given) {
  if (given.contains("--seed") && options.scheduler != "shuffled")
    return fail(ErrorKind::Usage, fmt::format("--seed is of --scheduler "
                                              "shuffled, and not of {}",
                                              options.scheduler));
  return {};
}

/// Applies transforms, and gives back the names of those that changed the DAG,
/// as a plan keeps them.
static Result<std::vector<std::string>>
applyAll(Dag &dag, const std::vector<Transform> &transforms) {
  std::vector<std::string> names;
  for (const Transform &transform : transforms) {
    MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(dag, transform));
    if (changes > 0)
      names.emplace_back(toString(transform));
  }
  return names;
}

/// The transforms that --transforms asks for. The scheduler says how free the
/// plan is where the list does not.
static Result<TransformChoice> chosenTransforms(const PlanOptions &options) {
  std::string list = options.transforms;
  if (list == "auto" || list == "none")
    return TransformChoice();
  MGPU_TRY(parseTransforms(list)); // as it was given
  // "auto" changes no program here.
  if (list.starts_with("auto,"))
    list.replace(0, 4, "none");
  else if (list.starts_with('-'))
    list.insert(0, "none,");
  MGPU_TRY_ASSIGN(TransformChoice choice, parseTransforms(list));
  if (choice.namesPolicy && options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--transforms {}: order, early and nofork are of "
                            "--scheduler list",
                            options.transforms));
  return choice;
}

Result<TargetPlan> makePlan(const Dag &dag, const MachineRequest &request,
                            uint64_t memory, std::vector<OpFactor> ops) {
  const PlanOptions &plan = request.plan;
  planner::PlanRequest target;
  MGPU_TRY_ASSIGN(target.memoryBytes,
                  memoryLimit(request.machine.topology(), plan.memory));
  if (memory > 0)
    target.memoryBytes = memory;
  if (target.memoryBytes <= request.workspace)
    return fail(ErrorKind::Invalid,
                fmt::format("cuBLASLt needs {} bytes of each device, which has "
                            "{}: allow more --memory, or use "
                            "--variant cublaslt=off",
                            request.workspace, target.memoryBytes));
  target.memoryBytes -= request.workspace;
  target.scheduler = plan.scheduler;
  target.streamsPerDevice = plan.streams;
  const bool isDrawn = plan.scheduler == "shuffled";
  target.seed = request.isHere && !isDrawn ? 1 : plan.seed;
  target.makesAll = request.isHere;
  MGPU_TRY_ASSIGN(TransformChoice choice,
                  request.isHere ? chosenTransforms(plan)
                                 : parseTransforms(plan.transforms));
  target.transforms = std::move(choice.transforms);
  target.schedulePolicy = choice.schedulePolicy;
  target.ops = std::move(ops);
  if (plan.budget.empty() && request.isHere)
    return makePlan(dag, request.machine, target);
  MGPU_TRY_ASSIGN(SearchBudget budget,
                  parseBudget(plan.budget.empty() ? "1s" : plan.budget));
  exact::Budget search(budget.seconds, budget.evaluations);
  return makePlan(dag, request.machine, target, search);
}

Result<Plan> readPlan(const std::string &path, Dag &dag) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(path));
  return readPlanText(
      path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, dag);
}

Result<std::optional<Plan>> storedPlan(LoadedProgram &program,
                                       const PlanOptions &options) {
  if (!options.planFile.empty())
    return readPlan(options.planFile, program.dag);
  if (program.bundle && !options.isChosen)
    return program.bundle->plan();
  if (options.mustBeStored && !program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has no plan of its own: give --plan FILE, as "
                            "`mgpu-tune plan -o FILE` writes it, or a bundle",
                            program.from.file));
  return std::optional<Plan>();
}

Result<Plan> makePlan(LoadedProgram &program, const PlanOptions &options) {
  MGPU_TRY_ASSIGN(auto stored, storedPlan(program, options));
  if (stored)
    return std::move(*stored);
  const std::string &target = program.from.target;
  MGPU_TRY_ASSIGN(const Machine machine,
                  openMachine(target, program.dag.numDevices,
                              options.collectivesFile, program.from.database));
  PlanOptions plan = options;
  plan.streams = streamsOf(target, options.streams);
  MGPU_TRY_ASSIGN(TargetPlan made,
                  makePlan(program.dag, {machine, plan, !isElsewhere(target)}));
  if (made.dag)
    program.dag = std::move(*made.dag);
  return std::move(made.plan);
}

Result<Plan> readPlanText(const std::string &path, std::string_view text,
                          Dag &dag) {
  auto wrong = [&](const Error &error) {
    return fail(error.kind, fmt::format("{}: {}", path, error.message));
  };
  auto names = parsePlanTransforms(text);
  if (!names)
    return wrong(names.error());
  std::vector<Transform> transforms;
  for (const std::string &name : *names) {
    auto transform = parseTransform(name);
    if (!transform)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: it was made after transform \"{}\", which "
                              "this version does not have",
                              path, name));
    transforms.push_back(std::move(*transform));
  }
  if (auto made = applyAll(dag, transforms); !made)
    return wrong(made.error());
  auto plan = parsePlan(text, dag);
  if (!plan)
    return wrong(plan.error());
  if (auto ok = verify(*plan, dag); !ok)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: unsafe plan: {}", path, ok.error().message));
  return plan;
}

/// The bytes of the fullest device, resident ones included.
static uint64_t memoryOf(const TargetPlan &plan, const Dag &dag) {
  if (plan.overlap)
    return plan.overlap->peakBytes;
  return largestArena(plan.plan) + dag.residentBytes;
}

Result<Front> makeFront(const Dag &dag, const MachineRequest &request) {
  constexpr double step = 0.9;
  Front front;
  uint64_t limit = 0;
  do {
    auto plan = makePlan(dag, request, limit);
    if (!plan &&
        (front.points.empty() || plan.error().kind != ErrorKind::Invalid))
      return fail(plan.error());
    if (!plan) {
      front.stopped = plan.error().message;
      break;
    }
    FrontPoint point{
        memoryOf(*plan, plan->dag ? *plan->dag : dag) + request.workspace,
        plan->plan.makespanUs, plan->contendedUs, plan->plan.lowerBoundUs,
        // See planner::makePlan().
        dag.spmd ? plan->plan.makespanUs : plan->contendedUs,
        plan->plan.transforms};
    limit = uint64_t(double(point.memory) * step);
    while (!front.points.empty() &&
           front.points.back().chosenUs >= point.chosenUs)
      front.points.pop_back();
    front.points.push_back(std::move(point));
  } while (limit > 0);
  return front;
}

Result<ChangedPlan> planWhatIf(const Dag &dag, const Dag &planned,
                               const MachineRequest &request,
                               const std::vector<std::string> &changes) {
  MGPU_TRY_ASSIGN(WhatIf changed,
                  applyWhatIf(changes, request.machine, dag, planned));
  const Machine other = request.machine.on(std::move(changed.topology));
  ChangedPlan out;
  MGPU_TRY_ASSIGN(out.plan, makePlan(changed.dag,
                                     {other, request.plan, request.isHere,
                                      request.workspace},
                                     0, changed.made));
  out.scaled = changed.scaled;
  const Dag &made = out.plan.dag ? *out.plan.dag : changed.dag;
  for (const OpFactor &op : changed.made)
    if (std::none_of(made.nodes.begin(), made.nodes.end(),
                     [&](const DagNode &node) {
                       return matchesPattern(op.pattern, node.name);
                     }))
      out.absent.push_back(op.pattern);
  return out;
}

} // namespace mgpu::pipeline
