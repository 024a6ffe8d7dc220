// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune db list|show|explain`.
#include "support/Plural.h"
#include "tools/mgpu-tune/DbCommand.h"

#include "db/Transfer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::pipeline {

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

static void print(const json &result) {
  fmt::print("{}\n",
             result.dump(2, ' ', false, json::error_handler_t::replace));
}

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

Result<int> runDbList(const DbOptions &options) {
  MGPU_TRY_ASSIGN(
      db::TuningStore store,
      openStore(options.database, db::Access::ReadOnly, &options.site));
  MGPU_TRY_ASSIGN(auto problems, store.problems());
  json out{{"database", store.path()}, {"problems", json::array()}};
  if (!options.json)
    fmt::print("{:<{}} {:>8} {:>8} {:>12}  {:<24} {:<24} {}\n", "key", keyWidth,
               "trials", "failed", "best us", "shape", "device", "program");
  for (const db::TuningProblem &problem : problems) {
    MGPU_TRY_ASSIGN(db::ProblemSummary summary, store.summary(problem));
    if (options.json) {
      json each = toJson(problem);
      each["trials"] = summary.trials;
      each["failed"] = summary.failed;
      each["best"] = summary.best ? toJson(*summary.best) : json();
      out["problems"].push_back(std::move(each));
      continue;
    }
    fmt::print(
        "{} {:>8} {:>8} {:>12}  {:<24} {:<24} {}\n",
        problem.key().substr(0, keyWidth), summary.trials, summary.failed,
        summary.best ? fmt::format("{:.3f}", summary.best->medianUs) : "-",
        brief(problem.shape, 24), brief(problem.device, 24),
        brief(problem.program, 40));
  }
  if (options.json)
    print(out);
  else
    fmt::print("{} in {}\n", counted(problems.size(), "problem"), store.path());
  warnOfDamage(store);
  return 0;
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
  if (options.json) {
    json out = toJson(problem);
    out["best"] = best ? toJson(*best) : json();
    out["damaged"] = found.damaged;
    out["trials"] = json::array();
    for (const db::Trial &trial : found.trials)
      out["trials"].push_back(toJson(trial));
    print(out);
    return 0;
  }
  printFields(problem);
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

} // namespace mgpu::pipeline
