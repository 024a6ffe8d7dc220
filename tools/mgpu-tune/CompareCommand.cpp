// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune compare FILE A B`.
#include "db/FileSystem.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Load.h"
#include "pipeline/tune/Compare.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace mgpu::tools {

using nlohmann::json;

namespace {

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
  tools::printJson(out);
}

/// Prints what `tune` measured of a tuned side, which is not measured anew
/// here.
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
  LoadOptions load = options.load;
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program));
  tuner::ProgramData data(program.dag, std::move(inputs));
  const tuner::TuningSubject subject = tuningSubject(program, context, data);
  MGPU_TRY_ASSIGN(const Encounter meeting,
                  compareWays(program, context, subject, options, budget));
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

} // namespace mgpu::tools
