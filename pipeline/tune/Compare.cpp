// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/Compare.h"

#include "db/FileSystem.h"
#include "support/Spelling.h"

#include <fmt/format.h>

#include <filesystem>
#include <random>

namespace mgpu::pipeline {

/// Finds the configuration that `word` means.
bool isPlanFile(const std::string &word) {
  return word != "default" && word != "serial" && word != "tuned" &&
         !word.ends_with(".db");
}

static Result<tuner::Realization> realize(const std::string &word,
                                          const LoadedProgram &program,
                                          const TuneContext &context,
                                          tuner::Evaluator &evaluator) {
  tuner::ProgramConfig config = evaluator.defaults();
  std::string planFile;
  if (word == "serial") {
    config.scheduler = "serial";
    config.streams = config.threads = 1;
  } else if (word == "tuned" || word.ends_with(".db")) {
    std::string path = word;
    if (word == "tuned") {
      MGPU_TRY_ASSIGN(path, db::databasePath(program.from.database));
    }
    MGPU_TRY_ASSIGN(auto found, readDecision(program, context, path));
    if (!found)
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' has nothing for this program on this "
                              "machine: run `mgpu-tune tune` first",
                              path));
    config = found->config;
  } else if (isPlanFile(word)) {
    static const std::vector<std::string> words = {"default", "serial",
                                                   "tuned"};
    std::error_code none;
    if (!std::filesystem::exists(word, none))
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' is none of default, serial, tuned, and "
                              "there is no such database (.db) or plan{}",
                              word, didYouMean(word, words)));
    planFile = word;
  }
  MGPU_TRY_ASSIGN(auto realized, evaluator.realize(config));
  if (!realized)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: {}", word, realized.error().what));
  if (!planFile.empty()) {
    planner::Dag changed = program.dag;
    MGPU_TRY_ASSIGN(realized->plan, readPlan(planFile, changed));
    realized->dag = std::make_shared<const planner::Dag>(std::move(changed));
  }
  return std::move(*realized);
}

Result<Encounter> compareWays(const LoadedProgram &program,
                              const TuneContext &context,
                              const tuner::TuningSubject &subject,
                              const WaysToCompare &options,
                              const SearchBudget &budget) {
  Encounter out;
  tuner::EvaluatorOptions evaluation;
  evaluation.cache =
      options.coldCaches ? bench::CacheMode::Cold : bench::CacheMode::Hot;
  evaluation.pinThreads = options.pinThreads;
  evaluation.freshSeed = std::random_device()();
  MGPU_TRY_ASSIGN(out.evaluator, tuner::Evaluator::create(subject, evaluation));
  std::vector<tuner::Realization> ways;
  for (const std::string *word : {&options.a, &options.b}) {
    MGPU_TRY_ASSIGN(auto realized,
                    realize(*word, program, context, *out.evaluator));
    MGPU_TRY_ASSIGN(auto admitted, out.evaluator->admit(realized));
    if (!admitted)
      return fail(ErrorKind::Invalid,
                  fmt::format("{} {}", *word, admitted.error().what));
    out.sides.push_back(std::move(*admitted));
    ways.push_back(std::move(realized));
  }
  bench::FreshOptions fresh;
  fresh.meeting.comparison.precision = 0.005;
  fresh.meeting.maxSeconds = std::min(budget.seconds, 3600.0);
  fresh.meeting.mostPairs =
      size_t(std::min<uint64_t>(budget.evaluations, 1'000'000));
  std::optional<Fault> faults[2];
  auto start = [&](size_t side) -> bench::StartSubject {
    return [&, side, isFirst = true]() mutable -> Result<bench::Subject> {
      if (std::exchange(isFirst, false))
        return subjectOf(out.sides[side], faults[side]);
      MGPU_TRY_ASSIGN(tuner::Candidate run,
                      out.evaluator->startAgain(ways[side]));
      auto kept = std::make_shared<tuner::Candidate>(std::move(run));
      return bench::Subject(
          [kept, fault = &faults[side]] { return subjectOf(*kept, *fault)(); });
    };
  };
  MGPU_TRY_ASSIGN(out.met, bench::headToHeadFresh(start(0), start(1), fresh));
  out.warnings = bench::conditions(out.met, bench::readEnvironment());
  return out;
}

} // namespace mgpu::pipeline
