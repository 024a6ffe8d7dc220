// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage: the best race each other and the default; the winner meets
// the default once more, on samples that did not choose it.
#include "bench/measure/FreshProcesses.h"
#include "tuner/session/Session.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using nlohmann::json;

static constexpr double secondsToDescribe = 0.05;

/// Whatever is not measured, because a candidate failed just then, stays
/// unknown: the decision does not hang on it.
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
    MGPU_TRY_ASSIGN(planner::Plan plan, planOf(*dag, config, subject.machine));
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

double Session::spentSeconds() const {
  return elapsed() + spentBefore + (earlier ? earlier->seconds : 0);
}

std::string Session::moreBudget() const {
  if (isStopped())
    return "run it again to go on";
  // An interval narrows with the root of the time.
  const double seconds = std::max(3 * spentSeconds(), 10.0);
  return seconds < 90 ? fmt::format("give --budget {:.0f}s", seconds)
                      : fmt::format("give --budget {:.0f}m", seconds / 60);
}

void Session::noteMeeting(const bench::HeadToHead &met, bool isFaster) {
  DecidedTimes &times = result.times;
  if (met.b.count > 0)
    times.before = measuredOf(met.b);
  times.after = isFaster ? measuredOf(met.a) : times.before;
  const bench::Comparison &found = met.comparison;
  if (std::isfinite(found.change.low) && std::isfinite(found.change.high))
    times.change = found.change;
  times.pairs = found.pairs;
  times.processes = found.processes;
  times.verdict = bench::toString(found.verdict);
  times.sentence = bench::describe(found, "the best found", "the default");
  times.isUndecided = found.verdict == bench::Verdict::Ambiguous;
  if (times.isUndecided)
    times.sentence += "; to know, " + moreBudget();
  bench::Environment now = bench::readEnvironment();
  now.cores = environment.cores;
  times.warnings = bench::conditions(met, now);
}

Result<void> Session::decide(Finalist &winner, Finalist &defaults) {
  result.config = winner.config;
  result.isDefault = winner.config == evaluator->defaults();
  result.agreement = winner.run.agreement();
  result.interrupted = isStopped();
  result.exhausted = exhaustedKernels && exhaustedJoint;

  const Measured &after = result.times.after;
  db::Trial trial = measuredTrial(textOf(winner.config), after.us, {},
                                  after.samples, 0, 0, result.agreement);
  trial.lowUs = after.lowUs;
  trial.highUs = after.highUs;
  json about = json::parse(trial.provenance.environment);
  json parts = json::array();
  for (const TuningResult::Part &part : result.parts)
    parts.push_back(
        {{"name", part.name}, {"points", part.points}, {"tried", part.tried}});
  about["session"] = {{"complete", !result.interrupted},
                      {"exhausted", result.exhausted},
                      {"seconds", spentSeconds()},
                      {"evaluations", result.evaluated + evaluatedBefore +
                                          (earlier ? earlier->evaluations : 0)},
                      {"times", toJson(result.times)},
                      {"tolerance_share", result.agreement.share},
                      {"space", result.spaceSize},
                      {"transforms", result.numTransformLists},
                      {"parts", std::move(parts)},
                      {"strategy", options.strategy},
                      {"seed", options.seed}};
  MGPU_TRY_ASSIGN(ProgramFacts facts,
                  describe(winner.config, winner.run, defaults.run));
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
  const double openUntil = (jointUntil + allUntil) / 2; // may be infinite
  for (const ProgramConfig &config : finalConfigs()) {
    MGPU_TRY_ASSIGN(auto realized, evaluator->realize(config));
    if (!realized ||
        !identities.insert(Evaluator::identity(*realized, config)).second)
      continue;
    std::optional<Candidate> run;
    if (elapsed() < openUntil) {
      MGPU_TRY_ASSIGN(auto admitted, evaluator->admit(*realized));
      if (admitted) {
        run.emplace(std::move(*admitted));
      } else if (!evaluator->isTimeUp()) {
        MGPU_TRY(drop(config, admitted.error()));
        continue;
      }
    }
    if (!run && !finalists.empty())
      break;    // there is no time to meet another
    if (!run) { // the default, which was checked at the beginning
      MGPU_TRY_ASSIGN(run, evaluator->startAgain(*realized));
    }
    finalists.push_back({config, std::move(*realized), std::move(*run)});
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
  bench::FreshOptions last;
  last.meeting.comparison = options.comparison;
  last.meeting.comparison.precision = 0.01;
  last.meeting.mostPairs = 512;
  last.meeting.maxSeconds = seconds;
  last.meeting.seed = options.seed + 1;
  last.limit = evaluator->timeLimit();
  // The first pair of processes is the one that is there and was checked.
  auto fresh = [&](Finalist &of, std::optional<Fault> &fault) {
    return [&, isFirst = true]() mutable -> Result<bench::Subject> {
      if (std::exchange(isFirst, false))
        return subjectOf(of.run, fault);
      MGPU_TRY_ASSIGN(Candidate run, evaluator->startAgain(of.realized));
      auto kept = std::make_shared<Candidate>(std::move(run));
      return bench::Subject(
          [kept, &fault] { return subjectOf(*kept, fault)(); });
    };
  };
  auto met = bench::headToHeadFresh(fresh(winner, mine),
                                    fresh(defaults, theirs), last);
  if ((theirs || mine) && evaluator->isTimeUp())
    return Met(); // cut short
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
  if (!evaluator->isTimeUp())
    MGPU_TRY(drop(winner.config, *mine));
  return Met();
}

Result<void> Session::drop(const ProgramConfig &config, const Fault &fault) {
  noteFailure(textOf(config), fault);
  return record(programKey, failedTrial(textOf(config), fault, 0));
}

/// The default won the race, or led when time was up.
void Session::noteDefaultAhead(const bench::RaceResult &race) {
  DecidedTimes &times = result.times;
  // A busy machine may leave no sample; the first measurement stays then.
  if (race.seconds[0].count > 0)
    times.before = times.after = measuredOf(race.seconds[0]);
  if (!race.isDecided)
    noteTimeUp();
}

void Session::noteTimeUp() {
  double bestInSearch = referenceUs;
  for (auto &[text, entry] : known)
    if (!entry.fault)
      bestInSearch = std::min(bestInSearch, entry.us);
  result.times.isUndecided = true;
  result.times.sentence = fmt::format(
      "the budget ended before the best candidate ({:+.1f} % in the search) "
      "could be told from the default; {}",
      100 * (bestInSearch / referenceUs - 1), moreBudget());
}

void Session::noteNothingTried() {
  const double given = options.asked.value_or(options.budget.seconds),
               left = options.budget.seconds - spentBefore;
  std::string why =
      fmt::format("earlier sessions spent the budget of {:.1f} s", given);
  if (left > 0)
    why = fmt::format(
        "building and measuring the default alone took {:.1f} s "
        "of {}a budget of {:.1f} s",
        builtSeconds,
        left < given ? fmt::format("the {:.1f} s left of ", left) : "", given);
  result.times.isUndecided = true;
  result.times.sentence =
      fmt::format("nothing else was tried, as {}; {}", why, moreBudget());
}

/// The default is what is left; it takes the place of an earlier winner only
/// where something was decided.
Result<void> Session::decideDefault(Finalist &defaults) {
  const bool isKept =
      earlier && earlier->config != defaults.config &&
      result.times.isUndecided &&
      std::ranges::none_of(result.failed, [&](const FailedCandidate &failed) {
        return failed.configuration == textOf(earlier->config);
      });
  if (!isKept)
    return decide(defaults, defaults);
  const std::string why = std::move(result.times.sentence);
  result.config = earlier->config;
  result.isDefault = false;
  result.fromStore = true;
  result.interrupted = isStopped();
  result.agreement = earlier->agreement;
  result.times = earlier->times;
  result.times.isUndecided = true;
  result.times.sentence += fmt::format("; it is kept: {}", why);
  return {};
}

Result<void> Session::finalStage() {
  result.times.sentence = "nothing tried was faster than the default";
  MGPU_TRY_ASSIGN(std::vector<Finalist> finalists, openFinalists());
  if (finalists.size() == 1 && finalConfigs().size() > 1 &&
      elapsed() >= (jointUntil + allUntil) / 2)
    noteTimeUp();
  if (finalists.size() == 1 && builtSeconds >= jointUntil)
    noteNothingTried();
  auto share = [&] {
    const double left = std::max(allUntil - elapsed(), 0.05);
    return isStopped() ? 1 : std::min(0.45 * left, 4.0);
  };
  std::vector<size_t> running(finalists.size());
  for (size_t k = 0; k < running.size(); ++k)
    running[k] = k;
  while (running.size() > 1) {
    if (evaluator->isTimeUp()) {
      noteTimeUp();
      break;
    }
    std::vector<std::optional<Fault>> faults(finalists.size());
    std::vector<bench::Subject> subjects;
    for (size_t k : running)
      subjects.push_back(subjectOf(finalists[k].run, faults[k]));
    bench::RaceOptions racing;
    racing.comparison = options.comparison;
    racing.maxSeconds = share();
    racing.seed = options.seed;
    MGPU_TRY_ASSIGN(bench::RaceResult race, bench::race(subjects, racing));
    if (std::ranges::any_of(faults, &std::optional<Fault>::has_value) &&
        evaluator->isTimeUp())
      continue; // they were cut short
    if (faults[0])
      return fail(ErrorKind::Invalid,
                  fmt::format("the default plan {}", faults[0]->what));
    const size_t winner = running[race.winner];
    for (size_t k : std::vector<size_t>(running))
      if (faults[k]) {
        std::erase(running, k);
        MGPU_TRY(drop(finalists[k].config, *faults[k]));
      }
    if (winner == 0) {
      noteDefaultAhead(race);
      break;
    }
    say(Stage::Final, fmt::format("winner of {}: {}", subjects.size(),
                                  textOf(finalists[winner].config)));
    MGPU_TRY_ASSIGN(auto met,
                    meetDefault(finalists[winner], finalists[0], share()));
    if (!met && evaluator->isTimeUp())
      continue;
    if (!met) {
      std::erase(running, winner);
      continue;
    }
    const bool isFaster = met->comparison.verdict == bench::Verdict::Fast;
    noteMeeting(*met, isFaster);
    return isFaster ? decide(finalists[winner], finalists[0])
                    : decideDefault(finalists[0]);
  }
  return decideDefault(finalists[0]);
}

} // namespace mgpu::tuner
