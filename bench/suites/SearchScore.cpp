// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/SearchScore.h"

#include "support/Random.h"
#include "tuner/strategy/SearchStrategy.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <numeric>

namespace mgpu::bench {

using tuner::ConfigId;
using tuner::RecordedSpace;

Result<SearchYardstick> SearchYardstick::make(const RecordedSpace &recorded) {
  SearchYardstick yardstick;
  std::vector<ConfigId> valid;
  std::vector<double> validCosts;
  double invalidCost = 0;
  for (ConfigId id = 0; id < recorded.space.size(); ++id) {
    if (recorded.timeMs[id]) {
      valid.push_back(id);
      validCosts.push_back(recorded.costMs[id]);
    } else {
      invalidCost += recorded.costMs[id];
    }
  }
  std::sort(valid.begin(), valid.end(), [&](ConfigId a, ConfigId b) {
    double timeA = *recorded.timeMs[a], timeB = *recorded.timeMs[b];
    return timeA > timeB || (timeA == timeB && a < b);
  });
  yardstick.ranks.resize(recorded.space.size());
  for (uint32_t k = 0; k < valid.size(); ++k) {
    yardstick.ranks[valid[k]] = k;
    yardstick.slowestFirst.push_back(*recorded.timeMs[valid[k]]);
  }
  const std::vector<double> &times = yardstick.slowestFirst;
  if (times.size() < 10 || times.front() == times.back())
    return fail(ErrorKind::Invalid,
                fmt::format("{}: {} valid points that differ are too few to "
                            "score a search",
                            recorded.name, times.size()));
  const double count = double(times.size());
  const double best = times.back(), median = times[times.size() / 2];
  double meanCost =
      std::accumulate(validCosts.begin(), validCosts.end(), 0.0) / count +
      invalidCost / double(recorded.space.size());
  std::nth_element(validCosts.begin(),
                   validCosts.begin() + ptrdiff_t(validCosts.size() / 2),
                   validCosts.end());
  yardstick.medianCost = validCosts[validCosts.size() / 2];
  if (!(yardstick.medianCost > 0))
    return fail(
        ErrorKind::Invalid,
        fmt::format("{}: no costs of measuring are recorded", recorded.name));

  auto timeToReach = [&](double share) {
    double target = best + (median - best) * (1 - share);
    double worse = double(
        std::partition_point(times.begin(), times.end(),
                             [&](double time) { return time > target; }) -
        times.begin());
    return std::ceil(worse / (count + 1 - worse)) * yardstick.medianCost;
  };
  yardstick.windowStart = timeToReach(0.01);
  yardstick.windowEnd = timeToReach(0.95);
  for (size_t k = 0; k < numScoreTimes; ++k) {
    double evaluations = yardstick.timeAt(k) / meanCost;
    double element = std::clamp(
        std::round(evaluations * (count + 1) / (evaluations + 1)), 1.0, count);
    yardstick.baseline.push_back(times[size_t(element) - 1]);
  }
  return yardstick;
}

double SearchYardstick::score(std::span<const double> meanRanks) const {
  const double best = slowestFirst.back();
  double sum = 0;
  for (size_t k = 0; k < numScoreTimes; ++k) {
    size_t low = size_t(meanRanks[k]);
    size_t high = std::min(low + 1, slowestFirst.size() - 1);
    double part = meanRanks[k] - double(low);
    double time = slowestFirst[low] * (1 - part) + slowestFirst[high] * part;
    // Where random search has surely found the optimum, nothing beats it.
    sum += baseline[k] > best ? (baseline[k] - time) / (baseline[k] - best)
                              : (time > best ? -1.0 : 0.0);
  }
  return sum / double(numScoreTimes);
}

static double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

SearchRun runSearch(const RecordedSpace &recorded,
                    const SearchYardstick &yardstick,
                    tuner::SearchStrategy &strategy) {
  SearchRun run;
  double clock = 0;
  uint32_t best = 0;
  while (run.ranks.size() < numScoreTimes) {
    double started = threadSeconds();
    std::optional<ConfigId> id = strategy.propose();
    run.ownSeconds += threadSeconds() - started;
    if (!id)
      break;
    clock += recorded.costMs[*id];
    while (run.ranks.size() < numScoreTimes &&
           yardstick.timeAt(run.ranks.size()) < clock)
      run.ranks.push_back(best);
    if (recorded.timeMs[*id])
      best = std::max(best, yardstick.rank(*id));
    started = threadSeconds();
    strategy.report(*id, recorded.timeMs[*id]);
    run.ownSeconds += threadSeconds() - started;
    ++run.evaluations;
  }
  run.ranks.resize(numScoreTimes, best);
  return run;
}

std::vector<double> meanRanks(std::span<const SearchRun> runs,
                              std::span<const uint32_t> chosen) {
  std::vector<double> mean(numScoreTimes, 0);
  for (uint32_t r : chosen)
    for (size_t k = 0; k < numScoreTimes; ++k)
      mean[k] += runs[r].ranks[k];
  for (double &rank : mean)
    rank /= double(chosen.size());
  return mean;
}

Interval aggregateScore(std::span<const SearchYardstick *const> yardsticks,
                        std::span<const std::vector<SearchRun>> runs,
                        uint64_t seed) {
  auto aggregate = [&](auto &&choose) {
    double sum = 0;
    for (size_t s = 0; s < runs.size(); ++s) {
      std::vector<uint32_t> chosen(runs[s].size());
      for (uint32_t r = 0; r < chosen.size(); ++r)
        chosen[r] = choose(r, uint32_t(chosen.size()));
      sum += yardsticks[s]->score(meanRanks(runs[s], chosen));
    }
    return sum / double(runs.size());
  };
  Interval interval;
  interval.middle = aggregate([](uint32_t r, uint32_t) { return r; });
  Random random(seed);
  std::vector<double> samples(1000);
  for (double &sample : samples)
    sample = aggregate([&](uint32_t, uint32_t count) {
      return uint32_t(random.below(count));
    });
  std::sort(samples.begin(), samples.end());
  interval.low = quantile(samples, 0.025);
  interval.high = quantile(samples, 0.975);
  return interval;
}

} // namespace mgpu::bench
