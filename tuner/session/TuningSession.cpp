// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/TuningSession.h"

#include "tuner/record/Provenance.h"
#include "tuner/session/Session.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using nlohmann::json;

std::string_view toString(Stage stage) {
  switch (stage) {
  case Stage::Start:
    return "start";
  case Stage::Kernels:
    return "kernels";
  case Stage::Joint:
    return "joint";
  case Stage::Final:
    return "final";
  }
  return "";
}

static db::TrialStatus statusOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::Crash:
    return db::TrialStatus::Crashed;
  case FaultKind::Hang:
    return db::TrialStatus::Timeout;
  case FaultKind::OutOfBounds:
  case FaultKind::WrongResult:
    return db::TrialStatus::Wrong;
  case FaultKind::OverLimit:
    return db::TrialStatus::OverLimit;
  case FaultKind::Refused:
    return db::TrialStatus::Invalid;
  }
  return db::TrialStatus::Invalid;
}

std::string Session::textOf(const ProgramConfig &config) const {
  return db::pairsText(toPairs(config, subject.dag, subject.kernels));
}

KeyInput Session::keys() const {
  return {subject.dag,     evaluator->defaultObjects(),
          environment,     options.version,
          options.devices, options.evaluation.cache == bench::CacheMode::Cold,
          subject.target,  subject.ranks};
}

void Session::say(Stage stage, std::string last) {
  if (!options.progress)
    return;
  Progress progress;
  progress.stage = stage;
  progress.evaluated = result.evaluated;
  progress.failed = result.failed.size();
  progress.seconds = elapsed();
  progress.secondsLeft = std::max(0.0, allUntil - elapsed());
  progress.evaluationsLeft =
      allMost > result.evaluated ? allMost - result.evaluated : 0;
  progress.defaultUs = referenceUs;
  progress.bestUs = bestUs;
  progress.last = std::move(last);
  options.progress(progress);
}

void Session::noteFailure(const std::string &configuration,
                          const Fault &fault) {
  result.failed.push_back({configuration, fault});
}

void Session::noteBest(double us) {
  if (bestUs != 0 && us >= bestUs)
    return;
  bestUs = us;
  result.history.push_back({elapsed(), result.evaluated, us});
}

db::Trial Session::failedTrial(std::string configuration, const Fault &fault,
                               double seconds) const {
  db::Trial trial;
  trial.configuration = std::move(configuration);
  trial.status = statusOf(fault.kind);
  trial.sentence = fmt::format("{}: {}", toString(fault.kind), fault.what);
  trial.seconds = seconds;
  trial.provenance = provenanceHere(options.version, environment.pinnedCpus);
  return trial;
}

db::Trial Session::measuredTrial(std::string configuration, double us,
                                 bench::Interval change, size_t samples,
                                 double deviationUs, double seconds,
                                 const Agreement &agreement) const {
  db::Trial trial;
  trial.configuration = std::move(configuration);
  trial.medianUs = trial.meanUs = trial.lowUs = trial.highUs = us;
  if (std::isfinite(change.low) && std::isfinite(change.high)) {
    double unit = us / (1 + change.middle);
    trial.lowUs = std::min(us, unit * (1 + change.low));
    trial.highUs = std::max(us, unit * (1 + change.high));
  }
  trial.spreadUs = deviationUs;
  trial.samples = std::max<size_t>(samples, 1);
  if (!agreement.isSameBits())
    trial.sentence = "its result is " + toText(agreement);
  trial.seconds = seconds;
  trial.provenance = provenanceHere(options.version, environment.pinnedCpus);
  return trial;
}

Result<void> Session::record(const db::TuningProblem &problem,
                             const db::Trial &trial) {
  if (subject.checkWhole)
    MGPU_TRY(subject.checkWhole());
  return store ? store->record(problem, trial) : Result<void>();
}

/// Loads what earlier sessions measured of the program, and how long they took
/// since the last decision.
Result<void> Session::loadTrials() {
  if (!store)
    return {};
  int64_t decidedMs = 0;
  MGPU_TRY_ASSIGN(db::Trials decisions, store->trials(decisionKey));
  for (const db::Trial &trial : decisions.trials)
    decidedMs = std::max(decidedMs, trial.provenance.timeMs);
  auto spend = [&](const db::Trial &trial) {
    if (trial.provenance.timeMs > decidedMs)
      spentBefore += trial.seconds;
  };
  const std::string defaultText = textOf(evaluator->defaults());
  MGPU_TRY_ASSIGN(db::Trials trials, store->trials(programKey));
  for (const db::Trial &trial : trials.trials) {
    spend(trial);
    ++result.resumed;
    bool isOk = trial.status == db::TrialStatus::Ok;
    if (trial.configuration == defaultText) {
      if (isOk && referenceUs == 0)
        referenceUs = trial.medianUs;
      continue;
    }
    if (trial.provenance.timeMs > decidedMs)
      ++evaluatedBefore;
    auto pairs = db::parsePairs(trial.configuration);
    if (!pairs)
      continue;
    auto config =
        fromPairs(*pairs, subject.dag, subject.kernels, subject.settings);
    if (!config)
      continue; // the space has changed since
    Known &entry = known[trial.configuration];
    entry.config = std::move(*config);
    if (!isOk)
      entry.fault = Fault{FaultKind::Refused, trial.sentence};
    else
      entry.us = trial.medianUs;
  }
  for (const db::TuningProblem &key : kernelKeys) {
    MGPU_TRY_ASSIGN(db::Trials ofKernel, store->trials(key));
    for (const db::Trial &trial : ofKernel.trials)
      spend(trial);
    result.resumed += ofKernel.trials.size();
  }
  return {};
}

Result<void> Session::begin() {
  started = options.started.value_or(Clock::now());
  environment = bench::readEnvironment();
  MGPU_TRY_ASSIGN(evaluator, Evaluator::create(subject, options.evaluation));
  environment.pinnedCpus = bench::cpusText(evaluator->cpus());
  result.pinnedCpus = environment.pinnedCpus;
  MGPU_TRY_ASSIGN(lists, transformLists(subject.dag));
  result.numTransformLists = lists.size();
  const KeyInput input = keys();
  programKey = programProblem(input);
  decisionKey = decisionProblem(input);
  std::vector<Dim3> grids = planner::largestGrids(subject.dag);
  for (uint32_t k = 0; k < subject.dag.kernels.size(); ++k)
    kernelKeys.push_back(kernelProblem(input, {k}, grids[k]));
  MGPU_TRY(loadTrials());
  if (store) {
    MGPU_TRY_ASSIGN(earlier, findDecision(input, subject.kernels,
                                          subject.settings, *store));
  }

  std::optional<Fault> fault;
  bench::StoppingOptions stopping;
  stopping.minSamples = 16;
  auto measured =
      bench::measure(subjectOf(evaluator->defaultCandidate(), fault), stopping);
  if (!measured)
    return fail(ErrorKind::Invalid,
                fmt::format("the default plan of the program {}",
                            measured.error().message));
  const bench::Summary &seconds = measured->seconds;
  const double us = seconds.median.middle * 1e6;
  if (referenceUs == 0)
    referenceUs = us;
  result.times.before = result.times.after = measuredOf(seconds);
  noteBest(referenceUs);
  bench::Interval change{0, seconds.median.low * 1e6 / us - 1,
                         seconds.median.high * 1e6 / us - 1};
  return record(programKey, measuredTrial(textOf(evaluator->defaults()),
                                          referenceUs, change, seconds.count,
                                          seconds.deviation * 1e6, elapsed()));
}

void Session::limitTo(double seconds) {
  constexpr double longest = 1e9; // beyond it a clock's number overflows
  evaluator->limitTo(
      seconds < longest ? started + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds))
                        : Clock::time_point::max());
}

void Session::shareBudget() {
  // Time that was spent and never came to a decision counts.
  double left = std::max(0.0, options.budget.seconds - spentBefore);
  // The finalists are started and checked again.
  const double finals =
      std::isfinite(left)
          ? std::min(std::clamp(0.15 * left, 1.0, 8.0) +
                         double(mostStarts) * evaluator->secondsToAdmit(),
                     0.5 * left)
          : 8;
  allUntil = left;
  builtSeconds = elapsed();
  jointUntil = std::max(left - finals, 0.0);
  // Something faster is worth a meeting, even where a session that was cut off
  // spent the budget.
  const double meeting = 1 + 4 * evaluator->secondsToAdmit();
  if (spentBefore > 0 && builtSeconds >= jointUntil &&
      finalConfigs().size() > 1) {
    jointUntil = builtSeconds;
    allUntil = std::max(left, builtSeconds + meeting);
  }
  kernelsUntil = 0.6 * jointUntil;
  uint64_t evaluations = options.budget.evaluations;
  allMost = evaluations - std::min(evaluations, evaluatedBefore);
  kernelsMost = allMost == UINT64_MAX ? allMost : allMost * 6 / 10;
}

Result<TuningResult> Session::run() {
  MGPU_TRY(begin());
  shareBudget();
  say(Stage::Start, fmt::format("the default takes {}",
                                durationText(result.times.before.us)));
  if (elapsed() < jointUntil) {
    limitTo(jointUntil);
    MGPU_TRY(kernelStage());
    MGPU_TRY(jointStage());
  } else {
    exhaustedJoint = false;
  }
  // The rest of a tenth more is for what the last answers need.
  limitTo(1.05 * allUntil);
  MGPU_TRY(finalStage());
  result.seconds = elapsed();
  result.onlyBits = evaluator->whyOnlyBits();
  result.compiled = evaluator->compilers().numCompiled();
  return std::move(result);
}

Result<TuningResult> tune(const TuningSubject &subject,
                          const TuningOptions &options,
                          db::TuningStore *store) {
  return Session(subject, options, store).run();
}

Result<std::optional<StoredDecision>>
findDecision(const KeyInput &keys,
             std::span<const kernels::KernelSpace> kernels,
             std::span<const TargetSetting> settings, db::TuningStore &store) {
  std::optional<StoredDecision> found;
  MGPU_TRY_ASSIGN(db::Trials trials, store.trials(decisionProblem(keys)));
  const db::TuningProblem program = programProblem(keys);
  // The latest: it met the ones before it.
  for (auto trial = trials.trials.rbegin(); trial != trials.trials.rend();
       ++trial) {
    if (trial->status != db::TrialStatus::Ok)
      continue;
    auto pairs = db::parsePairs(trial->configuration);
    if (!pairs)
      continue;
    auto config = fromPairs(*pairs, keys.dag, kernels, settings);
    if (config && !config->transforms.empty() &&
        !transformed(keys.dag, config->transforms))
      continue; // it is of transforms that did something else
    auto times = decidedTimesOf(*trial);
    if (!config || !times)
      continue; // written by a version that says something else
    const json about =
        json::parse(trial->provenance.environment, nullptr, false);
    MGPU_TRY_ASSIGN(bool bad,
                    store.isQuarantined(program, trial->configuration));
    if (bad)
      continue;
    const json &session = about.at("session");
    auto number = [&](const char *name) {
      auto at = session.find(name);
      return at != session.end() && at->is_number() ? at->get<double>() : 0.0;
    };
    auto flag = [&](const char *name) {
      auto at = session.find(name);
      return at != session.end() && at->is_boolean() && at->get<bool>();
    };
    found = StoredDecision{
        std::move(*config),         std::move(*times),
        number("seconds"),          uint64_t(number("evaluations")),
        flag("complete"),           flag("exhausted"),
        {number("tolerance_share")}};
    break;
  }
  return found;
}

} // namespace mgpu::tuner
