// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage: the best race each other and the default; the winner meets
// the default once more, on samples that did not choose it.
#include "tuner/session/Session.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using nlohmann::json;

static constexpr size_t mostFinalists = 4;

static constexpr double secondsToDescribe = 0.05;

/// What is not measured, because a candidate failed just then, stays unknown:
/// the decision does not hang on it.
Result<ProgramFacts> Session::describe(const ProgramConfig &winner,
                                       Candidate &run, Candidate &defaultRun) {
  ProgramFacts facts = describeProgram(subject.dag, options.name);
  if (!subject.target) // those of a GPU are not measured
    facts.peaks = bench::measurePeaks();
  for (size_t k = 0; k < facts.kernels.size(); ++k)
    facts.kernels[k].key = kernelKeys[k].key();
  auto look = [&](const ProgramConfig &config, Candidate &candidate,
                  std::optional<Timeline> &timeline,
                  double KernelFacts::*kernelUs) -> Result<void> {
    MGPU_TRY_ASSIGN(auto dag, evaluator->programAfter(config.transforms));
    MGPU_TRY_ASSIGN(planner::Plan plan, makePlan(*dag, config));
    if (auto spans = candidate.timeline(secondsToDescribe))
      timeline = describeReplay(*dag, plan, *spans);
    if (auto times = candidate.nodeTimes(secondsToDescribe))
      for (size_t k = 0; k < facts.kernels.size(); ++k)
        facts.kernels[k].*kernelUs = kernelSum(*dag, *times, uint32_t(k));
    return {};
  };
  MGPU_TRY(look(evaluator->defaults(), defaultRun, facts.before,
                &KernelFacts::defaultUs));
  if (winner != evaluator->defaults())
    MGPU_TRY(look(winner, run, facts.after, &KernelFacts::tunedUs));
  return facts;
}

Result<void> Session::decide(const ProgramConfig &winner,
                             std::optional<bench::HeadToHead> comparison,
                             Candidate &run, Candidate &defaultRun) {
  const bool isDefault = winner == evaluator->defaults();
  result.config = winner;
  result.isDefault = isDefault;
  result.agreement = run.agreement();
  result.interrupted = isStopped();
  result.exhausted = exhaustedKernels && exhaustedJoint;
  result.comparison = std::move(comparison);
  if (result.comparison) {
    result.tunedUs = result.comparison->a.median.middle * 1e6;
    result.defaultUs = result.comparison->b.median.middle * 1e6;
  }
  if (isDefault)
    result.tunedUs = result.defaultUs;

  bench::Interval change;
  size_t pairs = 1;
  std::string sentence = "nothing tried was faster than the default";
  if (result.comparison) {
    const bench::Comparison &found = result.comparison->comparison;
    sentence = bench::describe(found, "the best found", "the default");
    if (!isDefault)
      change = found.change;
    pairs = std::max<size_t>(found.pairs, 1);
  }
  double us = referenceUs * (1 + change.middle);
  db::Trial trial =
      measuredTrial(textOf(winner), us, change, pairs, 0, 0, result.agreement);
  json about = json::parse(trial.provenance.environment);
  json parts = json::array();
  for (const TuningResult::Part &part : result.parts)
    parts.push_back(
        {{"name", part.name}, {"points", part.points}, {"tried", part.tried}});
  about["session"] = {
      {"complete", !result.interrupted},
      {"exhausted", result.exhausted},
      {"seconds", elapsed() + spentBefore + (earlier ? earlier->seconds : 0)},
      {"evaluations", result.evaluated + evaluatedBefore +
                          (earlier ? earlier->evaluations : 0)},
      {"default_us", referenceUs},
      {"comparison", sentence},
      {"tolerance_share", result.agreement.share},
      {"verdict", result.comparison
                      ? bench::toString(result.comparison->comparison.verdict)
                      : ""},
      {"space", result.spaceSize},
      {"transforms", result.numTransformLists},
      {"parts", std::move(parts)},
      {"strategy", options.strategy},
      {"seed", options.seed}};
  MGPU_TRY_ASSIGN(ProgramFacts facts, describe(winner, run, defaultRun));
  about["program"] = toJson(facts);
  // Names come from the user's file and may be no UTF-8.
  trial.provenance.environment =
      about.dump(-1, ' ', false, json::error_handler_t::replace);
  trial.seconds = elapsed();
  return record(decisionKey, trial);
}

/// The default, what won before, and the fastest that were measured.
std::vector<ProgramConfig> Session::finalConfigs() const {
  std::vector<const Known *> order;
  for (auto &[text, entry] : known)
    if (!entry.fault)
      order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Known *a, const Known *b) { return a->us < b->us; });
  std::vector<ProgramConfig> configs = {evaluator->defaults()};
  auto add = [&](const ProgramConfig &config) {
    if (std::find(configs.begin(), configs.end(), config) == configs.end())
      configs.push_back(config);
  };
  if (earlier)
    add(earlier->config); // it won once: it is met, not forgotten
  for (const Known *entry : order)
    if (entry->us < referenceUs && configs.size() < 1 + mostFinalists)
      add(entry->config);
  return configs;
}

/// Starts a process for each that passes the check, the default's first.
Result<std::vector<Session::Finalist>> Session::openFinalists() {
  std::vector<Finalist> finalists;
  std::set<std::string> identities;
  for (const ProgramConfig &config : finalConfigs()) {
    MGPU_TRY_ASSIGN(auto realized, evaluator->realize(config));
    if (!realized ||
        !identities.insert(Evaluator::identity(*realized, config)).second)
      continue;
    MGPU_TRY_ASSIGN(auto admitted, evaluator->admit(*realized));
    if (!admitted) {
      noteFailure(textOf(config), admitted.error());
      MGPU_TRY(
          record(programKey, failedTrial(textOf(config), admitted.error(), 0)));
      continue;
    }
    finalists.push_back({config, std::move(*admitted)});
  }
  if (finalists.empty() || finalists[0].config != evaluator->defaults())
    return fail(ErrorKind::Invalid,
                "the default plan does not pass the check it passed before: "
                "the program gives other results from run to run");
  return finalists;
}

Result<std::optional<bench::HeadToHead>>
Session::meetDefault(Finalist &winner, Finalist &defaults, double seconds) {
  using Met = std::optional<bench::HeadToHead>;
  std::optional<Fault> mine, theirs;
  bench::HeadToHeadOptions last;
  last.comparison = options.comparison;
  last.comparison.precision = 0.01;
  last.mostPairs = 512;
  last.maxSeconds = seconds;
  last.seed = options.seed + 1;
  auto met = bench::headToHead(subjectOf(winner.run, mine),
                               subjectOf(defaults.run, theirs), last);
  if (theirs)
    return fail(ErrorKind::Invalid,
                fmt::format("the default plan {}", theirs->what));
  if (!mine && !met)
    return fail(met.error());
  if (!mine) {
    // After all those replays, and on data it never saw.
    MGPU_TRY_ASSIGN(auto sound, evaluator->checkFresh(winner.run));
    if (!sound)
      mine = sound.error();
  }
  if (!mine)
    return Met(std::move(*met));
  MGPU_TRY(drop(winner, *mine));
  return Met();
}

Result<void> Session::drop(const Finalist &finalist, const Fault &fault) {
  noteFailure(textOf(finalist.config), fault);
  return record(programKey, failedTrial(textOf(finalist.config), fault, 0));
}

Result<void> Session::finalStage() {
  MGPU_TRY_ASSIGN(std::vector<Finalist> finalists, openFinalists());
  const double left = std::max(allUntil - elapsed(), 1.0);
  const double share = isStopped() ? 1 : std::min(0.45 * left, 4.0);
  std::vector<size_t> running(finalists.size());
  for (size_t k = 0; k < running.size(); ++k)
    running[k] = k;
  while (running.size() > 1) {
    std::vector<std::optional<Fault>> faults(finalists.size());
    std::vector<bench::Subject> subjects;
    for (size_t k : running)
      subjects.push_back(subjectOf(finalists[k].run, faults[k]));
    bench::RaceOptions racing;
    racing.comparison = options.comparison;
    racing.maxSeconds = share;
    racing.seed = options.seed;
    MGPU_TRY_ASSIGN(bench::RaceResult race, bench::race(subjects, racing));
    if (faults[0])
      return fail(ErrorKind::Invalid,
                  fmt::format("the default plan {}", faults[0]->what));
    const size_t winner = running[race.winner];
    for (size_t k : std::vector<size_t>(running))
      if (faults[k]) {
        std::erase(running, k);
        MGPU_TRY(drop(finalists[k], *faults[k]));
      }
    if (winner == 0)
      break;
    say(Stage::Final, fmt::format("winner of {}: {}", subjects.size(),
                                  textOf(finalists[winner].config)));
    MGPU_TRY_ASSIGN(auto met,
                    meetDefault(finalists[winner], finalists[0], share));
    if (!met) {
      std::erase(running, winner);
      continue;
    }
    const bool faster = met->comparison.verdict == bench::Verdict::Fast;
    Finalist &decided = finalists[faster ? winner : 0];
    return decide(decided.config, std::move(*met), decided.run,
                  finalists[0].run);
  }
  return decide(finalists[0].config, std::nullopt, finalists[0].run,
                finalists[0].run);
}

} // namespace mgpu::tuner
