// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune db list|show|explain`.
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include "db/Maintenance.h"
#include "support/Units.h"
#include "tuner/record/Keys.h"
#include "tuner/report/ReadReport.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::tools {

using nlohmann::json;

static json toJson(const db::TuningProblem &problem) {
  return {{"key", problem.key()},
          {"program", problem.program},
          {"shape", problem.shape},
          {"device", problem.device},
          {"architecture", problem.architecture},
          {"driver", problem.driver},
          {"environment", problem.environment},
          {"policy", problem.policy}};
}

static json toJson(const db::Trial &trial) {
  return json::parse(db::trialToJson(trial));
}

static void print(const json &result) { tools::printJson(result); }

/// One line of at most `width` characters.
static std::string brief(std::string text, size_t width) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
  if (text.size() > width)
    text = text.substr(0, width - 3) + "...";
  return text;
}

static void warnOfDamage(const db::TuningStore &store) {
  if (store.damaged() > 0)
    fmt::print(stderr,
               "mgpu-tune: warning: {} damaged rows of '{}' were left out; "
               "'mgpu-tune db verify' says more\n",
               store.damaged(), store.path());
}

/// Characters of a key that are printed; enough to be the only one.
static constexpr size_t keyWidth = 12;

/// Whether a problem belongs to a tuned program: its trials, its decisions, its
/// profiles, and its kernels by themselves.
static bool isPartOf(const std::vector<tuner::TunedProgram> &tuned,
                     const db::TuningProblem &problem) {
  if (problem.program.starts_with(tuner::kernelPrefix))
    return !tuned.empty();
  return std::any_of(tuned.begin(), tuned.end(), [&](const auto &each) {
    return each.problem.program == problem.program &&
           each.problem.device == problem.device;
  });
}

static void printTuned(const std::vector<tuner::TunedProgram> &tuned) {
  fmt::print("{:<{}}  {:<20} {:<10} {:<23}  {:<22} {:>10} {:>10}  {}\n", "key",
             keyWidth, "file", "entry", "date", "target", "default", "tuned",
             "verdict");
  for (const tuner::TunedProgram &each : tuned) {
    auto time = [&](double us) {
      return each.times ? durationText(us) : std::string("-");
    };
    const auto times = each.times.value_or(tuner::DecidedTimes());
    fmt::print("{:<{}}  {:<20} {:<10} {:<23}  {:<22} {:>10} {:>10}  {}\n",
               each.problem.key().substr(0, keyWidth), keyWidth,
               brief(each.name.empty() ? "-" : each.name, 20),
               brief(each.entry.empty() ? "-" : each.entry, 10),
               tuner::timeText(each.timeMs), brief(each.problem.device, 22),
               time(times.before.us), time(times.after.us),
               !each.times             ? "not decided yet"
               : times.verdict.empty() ? "the default"
                                       : times.verdict);
  }
}

static Result<void> printProblem(db::TuningStore &store,
                                 const db::TuningProblem &problem) {
  MGPU_TRY_ASSIGN(db::ProblemSummary summary, store.summary(problem));
  fmt::print("{} {:>8} {:>8} {:>12}  {:<24} {:<24} {}\n",
             problem.key().substr(0, keyWidth), summary.trials, summary.failed,
             summary.best ? durationText(summary.best->medianUs) : "-",
             brief(problem.shape, 24), brief(problem.device, 24),
             brief(problem.program, 40));
  return {};
}

static Result<json> listAsJson(db::TuningStore &store,
                               const std::vector<tuner::TunedProgram> &tuned,
                               const std::vector<db::TuningProblem> &problems) {
  json out{{"database", store.path()},
           {"programs", json::array()},
           {"problems", json::array()}};
  for (const tuner::TunedProgram &each : tuned)
    out["programs"].push_back(
        {{"key", each.problem.key()},
         {"file", each.name},
         {"entry", each.entry},
         {"time_ms", each.timeMs},
         {"target", each.problem.device},
         {"configuration", each.configuration},
         {"times", each.times ? toJson(*each.times) : json()}});
  for (const db::TuningProblem &problem : problems) {
    MGPU_TRY_ASSIGN(db::ProblemSummary summary, store.summary(problem));
    json each = toJson(problem);
    each["trials"] = summary.trials;
    each["failed"] = summary.failed;
    each["best"] = summary.best ? toJson(*summary.best) : json();
    out["problems"].push_back(std::move(each));
  }
  return out;
}

Result<int> runDbList(const DbOptions &options) {
  MGPU_TRY_ASSIGN(
      db::TuningStore store,
      openStore(options.database, db::Access::ReadOnly, &options.site));
  MGPU_TRY_ASSIGN(auto problems, store.problems());
  MGPU_TRY_ASSIGN(const auto tuned, tuner::tunedPrograms(store));
  if (options.json) {
    MGPU_TRY_ASSIGN(const json out, listAsJson(store, tuned, problems));
    print(out);
    warnOfDamage(store);
    return 0;
  }
  const size_t count = problems.size();
  if (!options.all)
    std::erase_if(problems,
                  [&](const auto &each) { return isPartOf(tuned, each); });
  if (!tuned.empty())
    printTuned(tuned);
  if (!problems.empty()) {
    fmt::print("{:<{}} {:>8} {:>8} {:>12}  {:<24} {:<24} {}\n", "key", keyWidth,
               "trials", "failed", "best", "shape", "device", "program");
    for (const db::TuningProblem &problem : problems)
      MGPU_TRY(printProblem(store, problem));
  }
  fmt::print("{} in {}{}\n", counted(count, "problem"), store.path(),
             problems.size() < count ? "; --all lists each" : "");
  warnOfDamage(store);
  return 0;
}

/// The decision about the program of a problem, if there is one.
static Result<std::optional<tuner::TunedProgram>>
decisionAbout(db::TuningStore &store, const db::TuningProblem &problem) {
  using None = std::optional<tuner::TunedProgram>;
  MGPU_TRY_ASSIGN(auto tuned, tuner::tunedPrograms(store));
  for (tuner::TunedProgram &each : tuned)
    if (each.times &&
        (each.problem.key() == problem.key() ||
         each.problem.policy + tuner::decidedSuffix == problem.policy) &&
        each.problem.program == problem.program)
      return None(std::move(each));
  return None();
}

static void printFields(const db::TuningProblem &problem) {
  fmt::print("key           {}\nprogram       {}\nshape         {}\n"
             "device        {}\narchitecture  {}\ndriver        {}\n"
             "environment   {}\npolicy        {}\n",
             problem.key(), brief(problem.program, 200), problem.shape,
             problem.device, problem.architecture, problem.driver,
             problem.environment, problem.policy);
}

Result<int> runDbShow(const DbOptions &options) {
  MGPU_TRY_ASSIGN(
      db::TuningStore store,
      openStore(options.database, db::Access::ReadOnly, &options.site));
  MGPU_TRY_ASSIGN(db::TuningProblem problem, db::findByKey(store, options.key));
  MGPU_TRY_ASSIGN(db::Trials found, store.trials(problem));
  MGPU_TRY_ASSIGN(auto best, store.best(problem));
  auto rank = [](const db::Trial &trial) {
    return std::tuple(trial.status, trial.medianUs, trial.provenance.timeMs,
                      std::string_view(trial.configuration));
  };
  std::sort(found.trials.begin(), found.trials.end(),
            [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
  MGPU_TRY_ASSIGN(const auto decided, decisionAbout(store, problem));
  if (options.json) {
    json out = toJson(problem);
    out["decided"] = json();
    if (decided) {
      out["decided"] = toJson(*decided->times);
      out["decided"]["configuration"] = decided->configuration;
    }
    out["best"] = best ? toJson(*best) : json();
    out["damaged"] = found.damaged;
    out["trials"] = json::array();
    for (const db::Trial &trial : found.trials)
      out["trials"].push_back(toJson(trial));
    print(out);
    return 0;
  }
  printFields(problem);
  if (decided)
    fmt::print("winner        {}\n{}trials        (looked at for a short time "
               "each, beside the default, scaled to its first time)\n\n",
               decided->configuration, decidedText(*decided->times));
  else
    fmt::print("winner        {}\n\n", best ? best->configuration : "none");
  fmt::print("{:>12} {:>25} {:>8} {:>8}  {:<10} {}\n", "median us",
             "95 % interval", "samples", "seconds", "status", "configuration");
  size_t shown = options.limit == 0
                     ? found.trials.size()
                     : std::min<size_t>(options.limit, found.trials.size());
  for (size_t k = 0; k < shown; ++k) {
    const db::Trial &trial = found.trials[k];
    bool ok = trial.status == db::TrialStatus::Ok;
    fmt::print("{:>12} {:>25} {:>8} {:>8.3f}  {:<10} {}{}\n",
               ok ? fmt::format("{:.3f}", trial.medianUs) : "-",
               ok ? fmt::format("{:.3f} to {:.3f}", trial.lowUs, trial.highUs)
                  : "-",
               trial.samples, trial.seconds, db::statusName(trial.status),
               trial.configuration,
               trial.sentence.empty() ? "" : ": " + brief(trial.sentence, 120));
  }
  if (shown < found.trials.size())
    fmt::print("and {} more; --limit 0 shows all\n",
               found.trials.size() - shown);
  warnOfDamage(store);
  return 0;
}

Result<int> runDbExplain(const DbOptions &options) {
  MGPU_TRY_ASSIGN(
      db::TuningStore store,
      openStore(options.database, db::Access::ReadOnly, &options.site));
  MGPU_TRY_ASSIGN(db::TuningProblem asked, db::findByKey(store, options.key));
  auto replace = [](std::string &field, const auto &given) {
    if (given)
      field = *given;
  };
  replace(asked.program, options.program);
  replace(asked.device, options.device);
  replace(asked.architecture, options.architecture);
  replace(asked.driver, options.driver);
  replace(asked.environment, options.environment);
  replace(asked.policy, options.policy);
  if (options.shape) {
    auto pairs = db::parsePairs(*options.shape);
    if (!pairs)
      return fail(ErrorKind::Usage,
                  fmt::format("--shape: {}", pairs.error().message));
    asked.shape = *options.shape;
  }
  MGPU_TRY_ASSIGN(db::LookUp found, store.lookUp(asked));
  bool any = found.match != db::Match::None;
  if (options.json) {
    json out{{"asked", toJson(asked)},
             {"match", db::matchName(found.match)},
             {"reason", found.reason},
             {"site", found.fromSite},
             {"found", any ? toJson(found.problem) : json()},
             {"trial", any ? toJson(found.trial) : json()},
             {"regret", json()}};
    if (found.regret)
      out["regret"] = {{"expected", found.regret->expected},
                       {"worst", found.regret->worst},
                       {"basis", found.regret->basis}};
    print(out);
    return 0;
  }
  fmt::print("{}: {}\n", db::matchName(found.match), found.reason);
  if (any)
    fmt::print("configuration {}, {:.3f} us there{}\n",
               found.trial.configuration, found.trial.medianUs,
               found.fromSite ? ", from the site's file" : "");
  if (found.regret)
    fmt::print("expected to be {:.1f} % slower than the best, at worst {:.1f} "
               "%: by {}\n",
               100 * found.regret->expected, 100 * found.regret->worst,
               found.regret->basis);
  else if (any && found.match != db::Match::Exact)
    fmt::print("what it may cost cannot be estimated from one trial\n");
  return 0;
}

} // namespace mgpu::tools
