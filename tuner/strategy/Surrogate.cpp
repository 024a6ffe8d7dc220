// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mgpu::tuner {

SurrogateSearch::SurrogateSearch(const ConfigSpace &space, uint64_t seed,
                                 SurrogateOptions options)
    : space(space), options(options), random(seed), model(space, options.noise),
      visited(space.size()), isCandidate(space.size()) {}

void SurrogateSearch::addCandidate(ConfigId id) {
  if (visited.contains(id) || isCandidate[id])
    return;
  isCandidate[id] = true;
  model.addCandidate(id);
}

void SurrogateSearch::addNeighbours(ConfigId id) {
  space.neighbours(id, /*nearest=*/false, scratch);
  for (ConfigId neighbour : scratch)
    addCandidate(neighbour);
}

float SurrogateSearch::targetOf(double logCost) const {
  // A failure is as bad as the worst seen.
  return float(((std::isnan(logCost) ? worst : logCost) - centre) / spread);
}

void SurrogateSearch::rebuild() {
  auto costOf = [&](size_t k) {
    return std::isnan(logCosts[k]) ? worst : logCosts[k];
  };
  std::vector<size_t> chosen(points.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  std::sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) {
    return costOf(a) < costOf(b) || (costOf(a) == costOf(b) && a < b);
  });
  size_t numBest = std::min<size_t>(options.numBest, chosen.size());
  std::vector<ConfigId> bestPoints;
  for (size_t k = 0; k < numBest; ++k)
    bestPoints.push_back(points[chosen[k]]);
  auto sampleFrom = [&](size_t first, size_t count) {
    for (size_t k = first; k < count; ++k)
      std::swap(chosen[k], chosen[k + random.below(chosen.size() - k)]);
    chosen.resize(count);
  };
  // Room to grow by half before the next rebuild.
  const size_t most = options.maxObservations * 2 / 3;
  if (chosen.size() > most)
    sampleFrom(most * 2 / 3, most);

  double sum = 0, squares = 0;
  for (size_t k : chosen)
    sum += costOf(k);
  centre = sum / double(chosen.size());
  for (size_t k : chosen)
    squares += (costOf(k) - centre) * (costOf(k) - centre);
  spread = std::sqrt(squares / double(chosen.size()) + 1e-12);

  auto observe = [&](auto &&use) {
    std::vector<ConfigId> ids;
    std::vector<float> targets;
    for (size_t k : chosen) {
      ids.push_back(points[k]);
      targets.push_back(targetOf(logCosts[k]));
    }
    use(ids, targets);
  };
  if (points.size() >= fitAt) {
    auto all = chosen;
    constexpr size_t mostForScales = 128;
    if (chosen.size() > mostForScales)
      sampleFrom(0, mostForScales);
    observe([&](auto &ids, auto &targets) {
      model.fitScales(ids, targets, 3 * space.numParameters(), random.next());
    });
    chosen = std::move(all);
    fitAt = size_t(double(points.size()) * options.refitGrowth) + 2;
  }
  observe([&](auto &ids, auto &targets) { model.condition(ids, targets); });
  rebuildAt = std::min(
      fitAt, points.size() + std::max<size_t>(1, options.maxObservations / 3));

  isCandidate.assign(space.size(), false);
  for (ConfigId id : bestPoints)
    addNeighbours(id);
  for (uint32_t k = 0; k < options.numRandom && k < space.size(); ++k)
    addCandidate(ConfigId(random.below(space.size())));
}

std::optional<ConfigId> SurrogateSearch::propose() {
  std::optional<ConfigId> id;
  if (points.size() >= options.numInitial && numGood > 1) {
    if (points.size() >= rebuildAt || model.numCandidates() == 0)
      rebuild();
    float lowest = std::numeric_limits<float>::infinity();
    for (size_t c = 0; c < model.numCandidates(); ++c) {
      if (visited.contains(model.candidate(c)))
        continue;
      float estimate = model.mean(c) - options.optimism * model.deviation(c);
      if (estimate < lowest) {
        lowest = estimate;
        id = model.candidate(c);
      }
    }
  }
  if (!id)
    id = visited.pickOther(random);
  if (id)
    visited.insert(*id);
  return id;
}

void SurrogateSearch::report(ConfigId id, std::optional<double> cost) {
  visited.setCost(id, cost);
  double logCost =
      cost ? std::log(*cost) : std::numeric_limits<double>::quiet_NaN();
  points.push_back(id);
  logCosts.push_back(logCost);
  bool isBest = false;
  if (cost) {
    isBest = numGood > 0 && logCost < best;
    best = numGood ? std::min(best, logCost) : logCost;
    worst = numGood ? std::max(worst, logCost) : logCost;
    ++numGood;
  }
  if (!isCandidate[id])
    return;
  isCandidate[id] = false;
  for (size_t c = 0; c < model.numCandidates(); ++c)
    if (model.candidate(c) == id) {
      model.observe(c, targetOf(logCost));
      break;
    }
  if (isBest)
    addNeighbours(id);
}

} // namespace mgpu::tuner
