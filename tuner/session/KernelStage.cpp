// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first stage: kernels, each by the time of its own nodes. They do not
// share resources on one thread, so one candidate tries a configuration of
// every kernel at once and tells of each.
#include "planner/schedule/list/Schedulers.h"
#include "tuner/session/Session.h"
#include "tuner/space/PredictedOrder.h"
#include "tuner/strategy/SearchStrategy.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace mgpu::tuner {

using namespace planner;

/// A kernel below this share of the time of all kernels is left alone.
static constexpr double leastShare = 0.01;
/// Variants of a kernel that go on to the joint stage, the default among
/// them, and the most points they may span there with the plans, all of which
/// are listed.
static constexpr size_t mostChosen = 5;
static constexpr double mostJointPoints = 2'500'000;
/// Configurations that are measured before the strategy is asked: those that
/// the model predicts to be the fastest, where there is one.
static constexpr size_t mostPredicted = 4;
/// Replays of the default, then of the candidate, in turn.
static constexpr double secondsPerLook = 4e-3;
static constexpr int looks = 3;

struct Session::KernelSearch {
  uint32_t kernel = 0;
  std::optional<ConfigSpace> space;
  std::unique_ptr<SearchStrategy> strategy;
  double defaultUs = 0;             ///< when it was first measured
  std::map<ConfigId, double> times; ///< only those that work
  std::set<ConfigId> tried;
  bool done = false;
  std::vector<ConfigId> promising; ///< to be tried first, the last one first

  /// None: all have been.
  std::optional<ConfigId> next() {
    while (!promising.empty()) {
      const ConfigId id = promising.back();
      promising.pop_back();
      if (!tried.contains(id))
        return id;
    }
    return strategy->propose();
  }
  kernels::KernelConfig best(const kernels::KernelConfig &otherwise) const {
    auto at = std::min_element(
        times.begin(), times.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    return at == times.end() ? otherwise : kernelConfigAt(*space, at->first);
  }
};

double Session::kernelSum(const Dag &dag, const std::vector<double> &nodeTimes,
                          uint32_t kernel) {
  double sum = 0;
  for (size_t k = 0; k < nodeTimes.size(); ++k)
    if (auto *call = std::get_if<KernelCall>(&dag.nodes[k].work);
        call && call->kernel.value == kernel)
      sum += nodeTimes[k] *
             (dag.nodes[k].phase == Phase::Replay ? double(dag.loop.trips) : 1);
  return sum;
}

static db::Pairs pairsOf(const kernels::KernelConfig &config) {
  db::Pairs pairs;
  for (size_t k = 0; k < kernels::numKernelParameters; ++k)
    pairs[std::string(toString(kernels::KernelParameter(k)))] =
        std::to_string(config.values[k]);
  if (config.numTunables > 0)
    pairs["tunables"] = fmt::format(
        "{}", fmt::join(config.tunables.begin(),
                        config.tunables.begin() + config.numTunables, ","));
  return pairs;
}

static std::optional<kernels::KernelConfig> configOf(const std::string &text) {
  auto pairs = db::parsePairs(text);
  if (!pairs)
    return std::nullopt;
  std::string words;
  for (auto &[name, value] : *pairs)
    words += name + "=" + value + " ";
  auto config = kernels::parseKernelConfig(words);
  return config ? std::optional(*config) : std::nullopt;
}

Result<void> Session::openKernelSearches(std::vector<KernelSearch> &searches,
                                         const std::vector<double> &baseTimes) {
  double total = 0;
  for (uint32_t k = 0; k < subject.dag.kernels.size(); ++k)
    total += kernelSum(subject.dag, baseTimes, k);
  for (uint32_t k = 0; k < subject.dag.kernels.size(); ++k) {
    double us = kernelSum(subject.dag, baseTimes, k);
    auto space = spaceOf(subject.kernels[k], subject.gpu);
    if (!space) {
      if (space.error().kind != ErrorKind::Unsupported)
        return fail(space.error());
      continue; // too large to list: it keeps its default
    }
    result.spaceSize *= double(space->size());
    if (space->size() < 2 || us < leastShare * total)
      continue;
    KernelSearch &search = searches.emplace_back();
    search.kernel = k;
    search.space = std::move(*space);
  }
  // The spaces do not move any more: strategies refer to them.
  for (KernelSearch &search : searches) {
    const kernels::KernelSpace &kernel = subject.kernels[search.kernel];
    MGPU_TRY_ASSIGN(search.strategy,
                    makeStrategy(options.strategy, *search.space,
                                 options.seed + search.kernel));
    auto defaultId = findConfig(*search.space, kernel.defaults);
    const double now = kernelSum(subject.dag, baseTimes, search.kernel);
    if (store) {
      MGPU_TRY_ASSIGN(db::Trials trials,
                      store->trials(kernelKeys[search.kernel]));
      std::map<ConfigId, std::optional<double>> costs;
      for (const db::Trial &trial : trials.trials) {
        auto config = configOf(trial.configuration);
        auto id = config ? findConfig(*search.space, *config) : std::nullopt;
        if (!id)
          continue;
        if (trial.status != db::TrialStatus::Ok) {
          costs[*id] = std::nullopt;
        } else if (auto [at, fresh] = costs.try_emplace(*id, trial.medianUs);
                   !fresh && at->second) {
          at->second = std::min(*at->second, trial.medianUs);
        }
      }
      for (auto &[id, cost] : costs) {
        search.strategy->report(id, cost);
        search.tried.insert(id);
        if (cost)
          search.times[id] = *cost;
        if (id == defaultId && cost)
          search.defaultUs = *cost;
      }
    }
    if (search.defaultUs == 0) {
      search.defaultUs = now;
      if (defaultId) {
        search.times[*defaultId] = now;
        search.strategy->report(*defaultId, now);
        search.tried.insert(*defaultId);
      }
      MGPU_TRY(record(kernelKeys[search.kernel],
                      measuredTrial(db::pairsText(pairsOf(kernel.defaults)),
                                    now, {}, 1, 0, 0)));
    }
    MGPU_TRY(findPromising(search));
  }
  return {};
}

Result<void> Session::findPromising(KernelSearch &search) {
  if (!subject.predict)
    return {};
  std::vector<kernels::KernelConfig> configs;
  for (ConfigId id = 0; id < search.space->size(); ++id)
    configs.push_back(kernelConfigAt(*search.space, id));
  MGPU_TRY_ASSIGN(const std::vector<double> us,
                  subject.predict(search.kernel, configs));
  for (size_t k : fastestPredicted(
           configs, us, subject.kernels[search.kernel].defaults, mostPredicted))
    search.promising.insert(search.promising.begin(), ConfigId(k));
  return {};
}

Result<Outcome<Session::KernelRatios>>
Session::measureKernels(const ProgramConfig &config, Candidate &base) {
  using Ratios = Outcome<KernelRatios>;
  MGPU_TRY_ASSIGN(auto realized, evaluator->realize(config));
  if (!realized)
    return Ratios(tl::make_unexpected(realized.error()));
  MGPU_TRY_ASSIGN(auto admitted, evaluator->admit(*realized));
  if (!admitted)
    return Ratios(tl::make_unexpected(admitted.error()));
  const size_t numKernels = subject.dag.kernels.size();
  std::vector<std::vector<double>> ratios(numKernels);
  for (int look = 0; look < looks; ++look) {
    // Beside the default, at once, so that both have the same machine.
    auto theirs = base.nodeTimes(secondsPerLook);
    if (!theirs && evaluator->isTimeUp())
      return Ratios(tl::make_unexpected(theirs.error()));
    if (!theirs)
      return fail(ErrorKind::Invalid,
                  fmt::format("the default plan {}", theirs.error().what));
    auto mine = admitted->nodeTimes(secondsPerLook);
    if (!mine)
      return Ratios(tl::make_unexpected(mine.error()));
    for (uint32_t k = 0; k < numKernels; ++k)
      if (double before = kernelSum(subject.dag, *theirs, k); before > 0)
        ratios[k].push_back(kernelSum(subject.dag, *mine, k) / before);
    // A configuration that is far behind needs no second look.
    if (std::all_of(ratios.begin(), ratios.end(),
                    [](const std::vector<double> &ofKernel) {
                      return ofKernel.empty() || ofKernel.front() > 1.5;
                    }))
      break;
  }
  KernelRatios found{{}, admitted->agreement()};
  for (std::vector<double> &ofKernel : ratios)
    found.times.push_back(
        ofKernel.empty() ? 1 : bench::median(std::move(ofKernel)));
  return Ratios(std::move(found));
}

Result<void>
Session::tryKernels(std::vector<KernelSearch *> searches,
                    const std::vector<kernels::KernelConfig> &configs,
                    Candidate &base, double began) {
  ProgramConfig config = evaluator->defaults();
  config.threads = 1;
  for (size_t s = 0; s < searches.size(); ++s)
    config.kernels[searches[s]->kernel] = configs[s];
  MGPU_TRY_ASSIGN(auto ratios, measureKernels(config, base));
  if (!ratios && evaluator->isTimeUp())
    return {};
  if (!ratios && searches.size() > 1) {
    // Whose fault it is, each alone will tell.
    for (size_t s = 0; s < searches.size(); ++s)
      MGPU_TRY(tryKernels({searches[s]}, {configs[s]}, base, elapsed()));
    return {};
  }
  const double seconds = (elapsed() - began) / double(searches.size());
  ++result.evaluated;
  for (size_t s = 0; s < searches.size(); ++s) {
    KernelSearch &search = *searches[s];
    const db::TuningProblem &key = kernelKeys[search.kernel];
    auto id = findConfig(*search.space, configs[s]);
    search.tried.insert(*id);
    std::string text = db::pairsText(pairsOf(configs[s]));
    const std::string &name = subject.dag.kernels[search.kernel].name;
    if (!ratios) {
      search.strategy->report(*id, std::nullopt);
      noteFailure(fmt::format("kernel {}: {}", name, toText(configs[s])),
                  ratios.error());
      say(Stage::Kernels,
          fmt::format("{}: {}: {}", name, toString(ratios.error().kind),
                      ratios.error().what));
      MGPU_TRY(record(key, failedTrial(text, ratios.error(), seconds)));
      continue;
    }
    double us = search.defaultUs * ratios->times[search.kernel];
    search.strategy->report(*id, us);
    search.times[*id] = us;
    MGPU_TRY(record(key, measuredTrial(text, us, {}, looks, 0, seconds,
                                       ratios->agreement)));
  }
  if (ratios) {
    std::string last;
    for (KernelSearch *search : searches)
      last += fmt::format("{}{} {:+.0f} %", last.empty() ? "" : ", ",
                          subject.dag.kernels[search->kernel].name,
                          100 * (ratios->times[search->kernel] - 1));
    say(Stage::Kernels, last);
  }
  return {};
}

/// Fills `chosen`: kernels on the critical path first get a choice, as long as
/// the joint space stays small; the others get their best.
void Session::keepBestKernels(std::vector<KernelSearch> &searches,
                              const std::vector<double> &baseTimes) {
  chosen.clear();
  bestAlone.clear();
  for (const kernels::KernelSpace &kernel : subject.kernels) {
    chosen.push_back({kernel.defaults});
    bestAlone.push_back(kernel.defaults);
  }
  bestRatio.assign(subject.kernels.size(), 1);
  nodeUs = baseTimes;
  Paths paths = longestPaths(subject.dag, baseTimes);
  double longest = 0;
  for (size_t k = 0; k < baseTimes.size(); ++k)
    longest = std::max(longest, paths.head[k] + baseTimes[k] + paths.tail[k]);
  std::vector<std::pair<double, double>> weight(subject.dag.kernels.size());
  for (size_t k = 0; k < baseTimes.size(); ++k)
    if (auto *call = std::get_if<KernelCall>(&subject.dag.nodes[k].work)) {
      auto &[critical, total] = weight[call->kernel.value];
      total += baseTimes[k];
      if (paths.head[k] + baseTimes[k] + paths.tail[k] >= 0.999 * longest)
        critical += baseTimes[k];
    }
  std::sort(searches.begin(), searches.end(),
            [&](const KernelSearch &a, const KernelSearch &b) {
              return weight[a.kernel] > weight[b.kernel];
            });
  double points =
      ProgramSpace::numPlans(lists.size(), subject.settings, subject.limits());
  for (KernelSearch &search : searches) {
    std::vector<std::pair<double, ConfigId>> order;
    for (auto &[id, us] : search.times)
      order.push_back({us, id});
    std::sort(order.begin(), order.end());
    std::vector<kernels::KernelConfig> &mine = chosen[search.kernel];
    const kernels::KernelConfig defaults = mine[0];
    bestAlone[search.kernel] = search.best(defaults);
    if (!order.empty() && search.defaultUs > 0)
      bestRatio[search.kernel] = order.front().first / search.defaultUs;
    for (auto &[us, id] : order) {
      kernels::KernelConfig config = kernelConfigAt(*search.space, id);
      if (mine.size() < mostChosen && config != defaults)
        mine.push_back(config);
    }
    if (points * double(mine.size()) > mostJointPoints)
      mine = {bestAlone[search.kernel]};
    points *= double(mine.size());
  }
}

Result<void> Session::noteNotBuilt(KernelSearch &search,
                                   const kernels::KernelConfig &config,
                                   const Fault &fault, double seconds) {
  const ConfigId id = *findConfig(*search.space, config);
  search.strategy->report(id, std::nullopt);
  search.tried.insert(id);
  noteFailure(fmt::format("kernel {}: {}",
                          subject.dag.kernels[search.kernel].name,
                          toText(config)),
              fault);
  return record(kernelKeys[search.kernel],
                failedTrial(db::pairsText(pairsOf(config)), fault, seconds));
}

Result<void> Session::kernelStage() {
  result.spaceSize = 1;
  ProgramConfig single = evaluator->defaults();
  single.threads = 1; // nothing runs beside the kernel that is timed
  MGPU_TRY_ASSIGN(auto realized, evaluator->realize(single));
  if (!realized)
    return fail(ErrorKind::Invalid, realized.error().what);
  MGPU_TRY_ASSIGN(auto base, evaluator->admit(*realized));
  auto times = base ? base->nodeTimes(4 * secondsPerLook)
                    : tl::make_unexpected(base.error());
  std::vector<KernelSearch> searches;
  if (!times && evaluator->isTimeUp()) {
    exhaustedKernels = false;
    keepBestKernels(searches, std::vector<double>(subject.dag.nodes.size()));
    return {};
  }
  if (!times)
    return fail(
        ErrorKind::Invalid,
        fmt::format("the default plan on one thread {}", times.error().what));
  MGPU_TRY(openKernelSearches(searches, *times));
  while (!isStopped() && elapsed() < kernelsUntil &&
         result.evaluated < kernelsMost) {
    std::vector<KernelSearch *> active;
    std::vector<kernels::KernelConfig> configs;
    std::vector<CompilePool::Job> jobs;
    for (KernelSearch &search : searches) {
      if (search.done)
        continue;
      auto id = search.next();
      if (!id) {
        search.done = true;
        continue;
      }
      active.push_back(&search);
      configs.push_back(kernelConfigAt(*search.space, *id));
      jobs.push_back({search.kernel, configs.back(),
                      evaluator->variantOf(evaluator->defaults())});
    }
    if (active.empty())
      break;
    // Configurations that do not compile are told apart before anything runs.
    const double began = elapsed();
    MGPU_TRY_ASSIGN(auto built, evaluator->compilers().build(jobs));
    if (evaluator->isTimeUp())
      break;
    std::vector<KernelSearch *> sound;
    std::vector<kernels::KernelConfig> soundConfigs;
    for (size_t k = 0; k < active.size(); ++k) {
      if (built[k]) {
        sound.push_back(active[k]);
        soundConfigs.push_back(configs[k]);
        continue;
      }
      MGPU_TRY(noteNotBuilt(*active[k], configs[k], built[k].error(),
                            (elapsed() - began) / double(active.size())));
    }
    if (!sound.empty())
      MGPU_TRY(tryKernels(sound, soundConfigs, *base, began));
  }
  exhaustedKernels = std::ranges::all_of(searches, &KernelSearch::done);
  for (const KernelSearch &search : searches)
    result.parts.push_back({"kernel " + subject.dag.kernels[search.kernel].name,
                            double(search.space->size()), search.tried.size(),
                            describeSpace(subject.kernels[search.kernel])});
  keepBestKernels(searches, *times);
  return {};
}

} // namespace mgpu::tuner
