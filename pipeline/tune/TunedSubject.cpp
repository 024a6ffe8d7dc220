// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/TunedSubject.h"

#include "pipeline/build/TuneContext.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace mgpu::pipeline {

using tuner::TunedProgram;

namespace {

/// Keeps those of the program in FILE: its structure and its sizes are the
/// same.
std::vector<TunedProgram> ofProgram(std::vector<TunedProgram> programs,
                                    const LoadedProgram &program) {
  const bench::Environment environment = bench::readEnvironment();
  const db::TuningProblem wanted = tuner::programProblem(
      {program.dag, {}, environment, MGPU_VERSION, 1, false});
  std::erase_if(programs, [&](const TunedProgram &each) {
    return each.problem.program != wanted.program ||
           each.problem.shape != wanted.shape;
  });
  return programs;
}

std::string listOf(const std::vector<TunedProgram> &programs) {
  std::string text;
  for (const TunedProgram &each : programs)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                        each.problem.key().substr(0, 12),
                        each.name.empty() ? "" : " (" + each.name + ")");
  return text;
}

} // namespace

Result<TunedProgram> chooseTuned(std::vector<TunedProgram> programs,
                                 const LoadedProgram *program,
                                 const std::string &key,
                                 const std::string &path) {
  if (programs.empty())
    return fail(ErrorKind::Invalid,
                fmt::format("nothing was tuned or profiled in '{}': 'mgpu-tune "
                            "tune FILE --db {}' comes first",
                            path, path));
  const std::string all = listOf(programs);
  if (program) {
    programs = ofProgram(std::move(programs), *program);
    if (programs.empty())
      return fail(
          ErrorKind::Invalid,
          fmt::format("'{}' has nothing of '{}' with these arguments: "
                      "tune or profile it, or name one of {} by --problem",
                      path, program->from.file, all));
  }
  if (!key.empty()) {
    std::erase_if(programs, [&](const TunedProgram &each) {
      return !each.problem.key().starts_with(key);
    });
    if (programs.size() != 1)
      return fail(ErrorKind::Usage,
                  fmt::format("--problem {} is {} of the programs tuned in "
                              "'{}', which are {}",
                              key, programs.empty() ? "none" : "several", path,
                              all));
  }
  if (programs.size() > 1)
    fmt::print(stderr,
               "mgpu-tune: the latest of {} in '{}' is reported; --problem "
               "takes another: {}\n",
               programs.size(), path, listOf(programs));
  return std::move(programs.front());
}

Result<tuner::ProgramFacts> predictedFacts(const LoadedProgram &program) {
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  tuner::ProgramFacts facts = factsOf(program, context, /*coldCaches=*/false);
  MGPU_TRY_ASSIGN(
      planner::Plan plan,
      tuner::planOf(
          program.dag,
          tuner::defaultConfig(program.dag, context.spaces, context.limits),
          context.machine));
  facts.before = tuner::describeReplay(program.dag, plan, {});
  return facts;
}

} // namespace mgpu::pipeline
