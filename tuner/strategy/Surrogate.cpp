// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/Surrogate.h"

#include "support/Random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mgpu::tuner {

ConfigKernel::ConfigKernel(const ConfigSpace &space) : space(space) {
  for (uint32_t p = 0; p < space.numParameters(); ++p) {
    const Parameter &parameter = space.parameter(p);
    if (parameter.values.size() < 2)
      continue;
    varying.push_back(p);
    isChoice.push_back(parameter.isOrdered() ? 0.0f : 1.0f);
    double low = parameter.values.front(), high = parameter.values.back();
    bool logarithmic = low > 0 && high > 4 * low;
    std::vector<float> &features = featureOf.emplace_back();
    for (double value : parameter.values)
      features.push_back(
          float(logarithmic ? std::log(value / low) / std::log(high / low)
                            : (value - low) / (high - low)));
  }
  scales.assign(varying.size(), 1.0f);
}

void ConfigKernel::features(ConfigId id, float *out) const {
  auto positions = space.positions(id);
  for (size_t f = 0; f < varying.size(); ++f)
    out[f] = featureOf[f][positions[varying[f]]];
}

float ConfigKernel::operator()(const float *a, const float *b) const {
  float squared = 0;
  for (size_t f = 0; f < varying.size(); ++f) {
    float difference = a[f] - b[f];
    if (isChoice[f] != 0)
      difference = difference != 0 ? 1.0f : 0.0f;
    difference *= scales[f];
    squared += difference * difference;
  }
  float distance = std::sqrt(3 * squared);
  return (1 + distance) * std::exp(-distance);
}

GaussianProcess::GaussianProcess(const ConfigSpace &space, float noise)
    : kernel(space), noise(noise) {}

static float dot(const float *a, const float *b, size_t size) {
  // Four sums, so that a compiler may use vectors without reordering floats.
  float sums[8] = {};
  size_t k = 0;
  for (; k + 8 <= size; k += 8)
    for (size_t lane = 0; lane < 8; ++lane)
      sums[lane] += a[k + lane] * b[k + lane];
  for (; k < size; ++k)
    sums[k % 8] += a[k] * b[k];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
         ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

/// Row k of a packed lower triangle.
static size_t rowStart(size_t k) { return k * (k + 1) / 2; }

double GaussianProcess::negativeLogLikelihood(std::span<const float> features,
                                              std::span<const float> targets) {
  const size_t size = targets.size(), width = kernel.numFeatures();
  factor.resize(rowStart(size));
  weights.resize(size);
  double fit = 0, logDeterminant = 0;
  for (size_t i = 0; i < size; ++i) {
    float *row = &factor[rowStart(i)];
    for (size_t j = 0; j < i; ++j) {
      const float *other = &factor[rowStart(j)];
      row[j] = (kernel(&features[i * width], &features[j * width]) -
                dot(row, other, j)) /
               other[j];
    }
    row[i] = std::sqrt(std::max(1 + noise - dot(row, row, i), 1e-6f));
    weights[i] = (targets[i] - dot(row, weights.data(), i)) / row[i];
    fit += double(weights[i]) * weights[i];
    logDeterminant += std::log(double(row[i]));
  }
  return fit / 2 + logDeterminant;
}

void GaussianProcess::fitScales(std::span<const ConfigId> points,
                                std::span<const float> targets,
                                uint32_t numTrials, uint64_t seed) {
  const size_t width = kernel.numFeatures();
  if (width == 0)
    return;
  std::vector<float> features(points.size() * width);
  for (size_t k = 0; k < points.size(); ++k)
    kernel.features(points[k], &features[k * width]);
  auto loss = [&] {
    double prior = 0;
    for (float scale : kernel.scales) {
      double deviations = std::log(double(scale)) / 1.5;
      prior += deviations * deviations / 2;
    }
    return negativeLogLikelihood(features, targets) + prior;
  };
  Random random(seed);
  double best = loss();
  for (uint32_t trial = 0; trial < numTrials; ++trial) {
    std::vector<float> before = kernel.scales;
    if (random.below(4) == 0) {
      float factor = float(std::exp(1.5 * (random.uniform() - 0.5)));
      for (float &scale : kernel.scales)
        scale *= factor;
    } else {
      kernel.scales[random.below(width)] *=
          float(std::exp(3 * (random.uniform() - 0.5)));
    }
    for (float &scale : kernel.scales)
      scale = std::clamp(scale, 0.01f, 30.0f);
    double now = loss();
    if (now < best)
      best = now;
    else
      kernel.scales = std::move(before);
  }
}

void GaussianProcess::condition(std::span<const ConfigId> points,
                                std::span<const float> targets) {
  const size_t width = kernel.numFeatures();
  candidates.clear();
  candidateFeatures.clear();
  rows.clear();
  means.clear();
  explained.clear();
  observed = points.size();
  observedFeatures.resize(observed * width);
  for (size_t k = 0; k < observed; ++k)
    kernel.features(points[k], observedFeatures.data() + k * width);
  negativeLogLikelihood(observedFeatures, targets);
}

void GaussianProcess::addCandidate(ConfigId id) {
  const size_t width = kernel.numFeatures();
  candidates.push_back(id);
  candidateFeatures.resize(candidates.size() * width);
  float *feature = candidateFeatures.data() + (candidates.size() - 1) * width;
  kernel.features(id, feature);
  std::vector<float> &row = rows.emplace_back(observed);
  for (size_t k = 0; k < observed; ++k) {
    const float *line = &factor[rowStart(k)];
    row[k] = (kernel(observedFeatures.data() + k * width, feature) -
              dot(line, row.data(), k)) /
             line[k];
  }
  means.push_back(dot(row.data(), weights.data(), observed));
  explained.push_back(dot(row.data(), row.data(), observed));
}

float GaussianProcess::deviation(size_t position) const {
  return std::sqrt(std::max(1 - explained[position], 1e-9f));
}

void GaussianProcess::observe(size_t position, float target) {
  const size_t width = kernel.numFeatures();
  // The candidate's own row is the new row of the factor.
  std::vector<float> row = std::move(rows[position]);
  float diagonal = std::sqrt(std::max(1 + noise - explained[position], 1e-6f));
  float weight = (target - means[position]) / diagonal;
  std::vector<float> feature(
      candidateFeatures.begin() + ptrdiff_t(position * width),
      candidateFeatures.begin() + ptrdiff_t((position + 1) * width));
  const size_t last = candidates.size() - 1;
  candidates[position] = candidates[last];
  means[position] = means[last];
  explained[position] = explained[last];
  if (position != last)
    rows[position] = std::move(rows[last]);
  std::copy_n(candidateFeatures.begin() + ptrdiff_t(last * width), width,
              candidateFeatures.begin() + ptrdiff_t(position * width));
  candidates.pop_back();
  means.pop_back();
  explained.pop_back();
  rows.pop_back();
  candidateFeatures.resize(last * width);

  for (size_t c = 0; c < last; ++c) {
    float entry = (kernel(feature.data(), &candidateFeatures[c * width]) -
                   dot(row.data(), rows[c].data(), observed)) /
                  diagonal;
    rows[c].push_back(entry);
    means[c] += entry * weight;
    explained[c] += entry * entry;
  }
  factor.insert(factor.end(), row.begin(), row.end());
  factor.push_back(diagonal);
  weights.push_back(weight);
  observedFeatures.insert(observedFeatures.end(), feature.begin(),
                          feature.end());
  ++observed;
}

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
