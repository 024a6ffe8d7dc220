// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The second stage: plan and kernels together, by the time of the whole
// program beside the default's.
#include "tuner/record/MeasuredTimes.h"
#include "tuner/session/Session.h"
#include "tuner/strategy/SearchStrategy.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::tuner {

/// Lists of transforms that are measured before the search.
static constexpr size_t mostPromising = 8;
/// That predicting them may take; and a tenth of the stage.
static constexpr double mostSecondsToPredict = 5;

/// Enough to tell whether a configuration is worth more time.
static bench::HeadToHeadOptions quickLook(uint64_t seed) {
  bench::HeadToHeadOptions look;
  look.comparison.margin = look.comparison.precision = 0.02;
  look.comparison.slowIsEnough = true;
  look.mostPairs = 32;
  look.maxSeconds = 0.5;
  look.seed = seed;
  return look;
}

Result<std::optional<double>> Session::evaluate(const ProgramConfig &config) {
  using Cost = std::optional<double>;
  const std::string text = textOf(config);
  if (config == evaluator->defaults())
    return Cost(referenceUs);
  if (auto at = known.find(text); at != known.end())
    return at->second.fault ? Cost() : Cost(at->second.us);
  const double began = elapsed();
  Known entry{config, 0, std::nullopt};
  MGPU_TRY_ASSIGN(auto realized, evaluator->realize(config));
  std::string identity;
  if (realized) {
    identity = Evaluator::identity(*realized, config);
    // Other words for the same plan and kernels; not worth a row.
    if (auto at = equals.find(identity); at != equals.end()) {
      known[text] = entry = {config, at->second.us, at->second.fault};
      return entry.fault ? Cost() : Cost(entry.us);
    }
  }
  auto failed = [&](const Fault &fault) -> Result<Cost> {
    if (evaluator->isTimeUp())
      return Cost(); // it was cut short, which says nothing of it
    entry.fault = fault;
    known[text] = entry;
    if (!identity.empty())
      equals[identity] = entry;
    ++result.evaluated;
    noteFailure(text, fault);
    say(Stage::Joint,
        fmt::format("{}: {}: {}", text, toString(fault.kind), fault.what));
    MGPU_TRY(record(programKey, failedTrial(text, fault, elapsed() - began)));
    return Cost();
  };
  if (!realized)
    return failed(realized.error());
  MGPU_TRY_ASSIGN(auto admitted, evaluator->admit(*realized));
  if (!admitted)
    return failed(admitted.error());

  std::optional<Fault> mine, theirs;
  auto found =
      bench::headToHead(subjectOf(*admitted, mine),
                        subjectOf(evaluator->defaultCandidate(), theirs),
                        quickLook(options.seed + result.evaluated));
  if ((theirs || mine) && evaluator->isTimeUp())
    return Cost();
  if (theirs)
    return fail(ErrorKind::Invalid,
                fmt::format("the default plan {}", theirs->what));
  if (mine)
    return failed(*mine);
  if (!found)
    return fail(found.error());
  const bench::Interval &change = found->comparison.change;
  // Beside a default that the system does not run for a while anything looks
  // fast; nothing is faster than its own fastest sample.
  entry.us = std::max(referenceUs * (1 + change.middle), found->a.min * 1e6);
  known[text] = equals[identity] = entry;
  ++result.evaluated;
  noteBest(entry.us);
  say(Stage::Joint,
      fmt::format("{:+.1f} %: {}", 100 * (entry.us / referenceUs - 1), text));
  MGPU_TRY(
      record(programKey,
             measuredTrial(text, entry.us, change, found->comparison.pairs,
                           found->a.deviation * 1e6 * entry.us /
                               std::max(found->a.median.middle * 1e6, 1e-9),
                           elapsed() - began, admitted->agreement())));
  return Cost(entry.us);
}

/// The best of each kernel under the default plan, on every number of threads,
/// before any search: what an interrupted session has, too.
std::vector<ProgramConfig>
Session::firstConfigs(const ProgramSpace &space) const {
  std::vector<ProgramConfig> configs;
  if (earlier)
    configs.push_back(earlier->config);
  ProgramConfig best = evaluator->defaults();
  best.kernels = bestAlone;
  for (uint32_t threads = subject.mostThreads; threads >= 1; --threads) {
    best.threads = threads;
    configs.push_back(best);
  }
  ProgramConfig serial = best;
  serial.scheduler = "serial";
  serial.streams = serial.threads = 1;
  configs.push_back(serial);
  std::erase_if(configs, [&](const ProgramConfig &config) {
    return !space.find(config);
  });
  return configs;
}

/// The times of the program's nodes with each kernel at its best: as `profile`
/// measured them where it did, else as they were in the first stage.
Result<NodeTimes> Session::priorTimes() {
  NodeTimes times(subject.dag.nodes.size());
  if (store && options.evaluation.cache == bench::CacheMode::Hot) {
    ProgramConfig single = evaluator->defaults();
    single.threads = 1;
    MGPU_TRY_ASSIGN(times, readNodeTimes(keys(), single, *store));
  }
  for (size_t k = 0; k < times.size(); ++k) {
    if (!times[k] && nodeUs[k] > 0)
      times[k] = nodeUs[k];
    auto *call = std::get_if<planner::KernelCall>(&subject.dag.nodes[k].work);
    if (times[k] && call)
      *times[k] *= bestRatio[call->kernel.value];
  }
  return times;
}

Result<std::vector<ProgramConfig>> Session::promisingConfigs() {
  if (lists.size() < 2)
    return std::vector<ProgramConfig>();
  MGPU_TRY_ASSIGN(NodeTimes timed, priorTimes());
  PriorTimes prior(subject.dag, timed, subject.machine);
  std::multimap<double, ProgramConfig> order; // equal ones stay as listed
  const double until =
      elapsed() + std::min(0.1 * std::max(jointUntil - elapsed(), 0.0),
                           mostSecondsToPredict);
  for (const TransformList &list : lists) {
    if (list.empty() || isStopped() || elapsed() > until)
      continue;
    MGPU_TRY_ASSIGN(auto dag, evaluator->programAfter(list));
    std::optional<std::pair<double, ProgramConfig>> best;
    for (uint32_t threads = 1; threads <= subject.mostThreads; threads *= 2) {
      ProgramConfig config = evaluator->defaults();
      config.kernels = bestAlone;
      config.transforms = list;
      config.threads = threads;
      MGPU_TRY_ASSIGN(double us,
                      predictedUs(*dag, config, subject.machine, prior));
      if (!best || us < best->first)
        best = {us, std::move(config)};
    }
    order.insert(std::move(*best));
  }
  std::vector<ProgramConfig> configs;
  for (auto &[us, config] : order)
    configs.push_back(std::move(config));
  return configs;
}

Result<void> Session::jointStage() {
  MGPU_TRY_ASSIGN(ProgramSpace space,
                  ProgramSpace::create(subject.dag, lists, subject.settings,
                                       chosen, subject.limits()));
  // The plans, beside the kernels' own spaces counted before.
  double choices = 1;
  for (const auto &ofKernel : chosen)
    choices *= double(ofKernel.size());
  result.spaceSize *= double(space.points().size()) / choices;

  MGPU_TRY_ASSIGN(auto strategy,
                  makeStrategy(options.strategy, space.points(), options.seed));
  auto report = [&](const ProgramConfig &config, std::optional<double> cost) {
    if (auto id = space.find(config))
      strategy->report(*id, cost);
  };
  report(evaluator->defaults(), referenceUs);
  for (auto &[text, entry] : known)
    report(entry.config, entry.fault ? std::nullopt : std::optional(entry.us));
  std::set<std::string> reported;
  for (const ProgramConfig &config : firstConfigs(space)) {
    if ((isStopped() && !reported.empty()) || evaluator->isTimeUp())
      break; // one tells what the kernels are worth
    if (!reported.insert(textOf(config)).second ||
        known.contains(textOf(config)))
      continue;
    MGPU_TRY_ASSIGN(auto cost, evaluate(config));
    report(config, cost);
  }
  auto inBudget = [&] {
    return !isStopped() && elapsed() < jointUntil && result.evaluated < allMost;
  };
  MGPU_TRY_ASSIGN(auto promising, promisingConfigs());
  for (size_t k = 0; k < std::min(promising.size(), mostPromising); ++k) {
    if (!inBudget())
      break;
    MGPU_TRY_ASSIGN(auto cost, evaluate(promising[k]));
    report(promising[k], cost);
  }
  exhaustedJoint = false;
  // A proposal whose plan was met before costs nothing and counts for nothing,
  // so their number needs a limit of its own.
  while (inBudget()) {
    auto id = strategy->propose();
    if (!id) {
      exhaustedJoint = true;
      break;
    }
    MGPU_TRY_ASSIGN(auto cost, evaluate(space.at(*id)));
    strategy->report(*id, cost);
  }
  TuningResult::Part part{"program", double(space.points().size()), 0,
                          space.describe()};
  for (uint32_t k = 0; k < chosen.size(); ++k)
    if (chosen[k].size() > 1) {
      SpaceParameter &each = part.parameters.emplace_back();
      each.name = kernelKeyPrefix + subject.dag.kernels[k].name;
      for (const kernels::KernelConfig &config : chosen[k])
        each.values.push_back(toText(config));
    }
  std::set<ConfigId> tried;
  for (auto &[text, entry] : known)
    if (auto id = space.find(entry.config))
      tried.insert(*id);
  part.tried = tried.size();
  result.parts.push_back(std::move(part));
  return {};
}

} // namespace mgpu::tuner
