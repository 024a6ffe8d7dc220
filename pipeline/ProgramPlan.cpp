// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/ProgramPlan.h"

#include "pipeline/Target.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/transform/ChunkCounts.h"
#include "planner/schedule/transform/Transform.h"
#include "support/FileIO.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using planner::Dag, planner::Plan, planner::Transform;

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
    MGPU_TRY_ASSIGN(uint32_t changes, planner::applyTransform(dag, transform));
    if (changes > 0)
      names.emplace_back(toString(transform));
  }
  return names;
}

/// Sets the numbers of the chunks that have none to those of the least
/// makespan, after the transforms before them.
static Result<void> chooseChunks(const Dag &dag,
                                 const planner::PlanRequest &request,
                                 std::vector<Transform> &transforms) {
  if (transforms.empty())
    return {};
  Dag before = dag;
  for (Transform &transform : transforms) {
    if (transform.kind == planner::TransformKind::Chunk &&
        transform.counts.empty()) {
      auto makespan = [&](const Dag &of) -> Result<double> {
        planner::PlanRequest draft = request;
        draft.isDraft = true;
        MGPU_TRY_ASSIGN(Plan plan, planner::makePlan(of, draft));
        return plan.makespanUs;
      };
      MGPU_TRY_ASSIGN(planner::ChunkCounts found,
                      planner::findChunkCounts(before, {}, makespan));
      transform.counts = std::move(found.counts);
    }
    MGPU_TRY(planner::applyTransform(before, transform));
  }
  return {};
}

/// What --transforms asks for. The scheduler says how free the plan is where
/// the list does not.
static Result<planner::TransformChoice>
chosenTransforms(const PlanOptions &options) {
  std::string list = options.transforms;
  if (list == "auto" || list == "none")
    return planner::TransformChoice();
  MGPU_TRY(planner::parseTransforms(list)); // as it was given
  // "auto" changes no program here.
  if (list.starts_with("auto,"))
    list.replace(0, 4, "none");
  else if (list.starts_with('-'))
    list.insert(0, "none,");
  MGPU_TRY_ASSIGN(planner::TransformChoice choice,
                  planner::parseTransforms(list));
  if (choice.namesPolicy && options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--transforms {}: order, early and nofork are of "
                            "--scheduler list",
                            options.transforms));
  return choice;
}

/// The plan of options.scheduler for the host.
static Result<Plan> schedule(LoadedProgram &program,
                             const PlanOptions &options) {
  MGPU_TRY_ASSIGN(planner::TransformChoice choice, chosenTransforms(options));
  planner::PlanRequest request;
  request.scheduler = options.scheduler;
  request.seed = options.seed;
  request.streamsPerDevice = streamsOf(program.from.target, options.streams);
  request.schedulePolicy = choice.schedulePolicy;
  MGPU_TRY(chooseChunks(program.dag, request, choice.transforms));
  MGPU_TRY_ASSIGN(std::vector<std::string> names,
                  applyAll(program.dag, choice.transforms));
  for (const Transform &transform : choice.transforms)
    if (planner::policyFlagOf(transform.kind))
      names.emplace_back(toString(transform));
  MGPU_TRY_ASSIGN(Plan plan, planner::makePlan(program.dag, request));
  plan.transforms = std::move(names);
  return plan;
}

Result<Plan> makePlan(LoadedProgram &program, const PlanOptions &options) {
  if (!options.planFile.empty())
    return readPlan(options.planFile, program.dag);
  if (program.bundle && !options.isChosen)
    return program.bundle->plan();
  if (options.mustBeStored && !program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has no plan of its own: give --plan FILE, as "
                            "`mgpu-tune plan -o FILE` writes it, or a bundle",
                            program.from.file));
  return schedule(program, options);
}

Result<Plan> readPlan(const std::string &path, planner::Dag &dag) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(path));
  return readPlanText(
      path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, dag);
}

Result<Plan> readPlanText(const std::string &path, std::string_view text,
                          planner::Dag &dag) {
  auto wrong = [&](const Error &error) {
    return fail(error.kind, fmt::format("{}: {}", path, error.message));
  };
  auto names = planner::parsePlanTransforms(text);
  if (!names)
    return wrong(names.error());
  std::vector<planner::Transform> transforms;
  for (const std::string &name : *names) {
    auto transform = planner::parseTransform(name);
    if (!transform)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: it was made after transform \"{}\", which "
                              "this version does not have",
                              path, name));
    transforms.push_back(std::move(*transform));
  }
  if (auto made = applyAll(dag, transforms); !made)
    return wrong(made.error());
  auto plan = planner::parsePlan(text, dag);
  if (!plan)
    return wrong(plan.error());
  if (auto ok = planner::verify(*plan, dag); !ok)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: unsafe plan: {}", path, ok.error().message));
  return plan;
}

} // namespace mgpu::pipeline
