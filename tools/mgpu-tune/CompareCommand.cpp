// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune compare FILE A B`.
#include "bench/measure/FreshProcesses.h"
#include "db/FileSystem.h"
#include "pipeline/ChooseOrder.h"
#include "pipeline/Load.h"
#include "support/Spelling.h"
#include "support/Units.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <random>

namespace mgpu::pipeline {

using nlohmann::json;

namespace {

/// What `word` means: "default", "serial", "tuned", a database or a plan.
Result<tuner::Realization> realize(const std::string &word,
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
  } else if (word != "default") {
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

json toJson(const bench::Summary &summary) {
  auto us = [](double seconds) {
    return std::isfinite(seconds) ? json(seconds * 1e6) : json();
  };
  return {{"median_us", us(summary.median.middle)},
          {"low_us", us(summary.median.low)},
          {"high_us", us(summary.median.high)},
          {"min_us", us(summary.min)},
          {"p95_us", us(summary.p95)},
          {"samples", summary.count}};
}

/// Two ways to run the program, measured against each other.
struct Encounter {
  std::unique_ptr<tuner::Evaluator> evaluator;
  std::vector<std::string> warnings; ///< about the machine
  std::vector<tuner::Candidate> sides;
  bench::HeadToHead met;
};

Result<Encounter> meet(const LoadedProgram &program, const TuneContext &context,
                       const tuner::TuningSubject &subject,
                       const SearchBudget &budget,
                       const CompareOptions &options) {
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

void printJson(const Encounter &meeting, const CompareOptions &options) {
  const bench::HeadToHead &met = meeting.met;
  const bench::Comparison &found = met.comparison;
  auto percent = [](double share) {
    return std::isfinite(share) ? json(100 * share) : json();
  };
  json out{{"file", options.load.file},
           {"a", options.a},
           {"b", options.b},
           {"verdict", bench::toString(found.verdict)},
           {"change_percent",
            {{"middle", percent(found.change.middle)},
             {"low", percent(found.change.low)},
             {"high", percent(found.change.high)}}},
           {"pairs", found.pairs},
           {"processes", found.processes},
           {"warnings", meeting.warnings},
           {"pinned_cpus", bench::cpusText(meeting.evaluator->cpus())},
           {"discarded", met.discarded},
           {"agreement",
            {{"a", toText(meeting.sides[0].agreement())},
             {"b", toText(meeting.sides[1].agreement())}}},
           {"times", {{"a", toJson(met.a)}, {"b", toJson(met.b)}}}};
  pipeline::printJson(out);
}

/// What `tune` measured of a tuned side, which is not measured anew here.
Result<void> printStored(const LoadedProgram &program,
                         const TuneContext &context,
                         const CompareOptions &options) {
  for (const std::string &word : {options.a, options.b}) {
    if (word != "tuned" && !word.ends_with(".db"))
      continue;
    std::string path = word;
    if (word == "tuned") {
      MGPU_TRY_ASSIGN(path, db::databasePath(program.from.database));
    }
    MGPU_TRY_ASSIGN(auto found, readDecision(program, context, path));
    if (found)
      fmt::print("as it was tuned in '{}':\n{}", path,
                 decidedText(found->times));
  }
  return {};
}

} // namespace

Result<int> runCompare(const CompareOptions &options) {
  MGPU_TRY_ASSIGN(SearchBudget budget, parseBudget(options.budget));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(options.load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program));
  tuner::ProgramData data(program.dag, std::move(inputs));
  const tuner::TuningSubject subject = tuningSubject(program, context, data);
  MGPU_TRY_ASSIGN(const Encounter meeting,
                  meet(program, context, subject, budget, options));
  if (options.json) {
    printJson(meeting, options);
    return 0;
  }
  const auto &[evaluator, warnings, sides, met] = meeting;
  fmt::print("{}\n", bench::describe(met.comparison, options.a, options.b));
  for (const auto &[word, summary] :
       {std::pair(&options.a, &met.a), std::pair(&options.b, &met.b)})
    fmt::print("  {:<12} {} median of {} (min {}, p95 {})\n", *word,
               durationText(summary->median.middle * 1e6), summary->count,
               durationText(summary->min * 1e6),
               durationText(summary->p95 * 1e6));
  for (const std::string &warning : warnings)
    fmt::print("  {:<12} {}\n", "warning", warning);
  MGPU_TRY(printStored(program, context, options));
  for (size_t k = 0; k < sides.size(); ++k)
    if (!sides[k].agreement().isSameBits())
      fmt::print("  {:<12} gives the reference's results {}\n",
                 k == 0 ? options.a : options.b, toText(sides[k].agreement()));
  return 0;
}

} // namespace mgpu::pipeline
