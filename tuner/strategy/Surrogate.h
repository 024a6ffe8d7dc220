// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_SURROGATE_H
#define MGPU_TUNER_STRATEGY_SURROGATE_H

// Bayesian search: a Gaussian process of the logarithm of the cost proposes
// the candidate whose optimistic estimate is lowest (Srinivas et al. 2010,
// GP-LCB), among the neighbours of the best points and a random sample.

#include "support/Random.h"
#include "tuner/space/ConfigSpace.h"
#include "tuner/strategy/SearchStrategy.h"

#include <limits>

namespace mgpu::tuner {

// The points a search has proposed or been told of, and what came of them.

class Visited {
public:
  explicit Visited(uint32_t size)
      : known(size, false), costs(size, unmeasured) {}

  bool contains(ConfigId id) const { return known[id]; }
  bool isFull() const { return numKnown == known.size(); }
  void insert(ConfigId id) {
    numKnown += !known[id];
    known[id] = true;
  }
  void setCost(ConfigId id, std::optional<double> cost) {
    insert(id);
    costs[id] = cost.value_or(std::numeric_limits<double>::infinity());
  }
  /// Infinite for a failure and for what was not measured.
  double cost(ConfigId id) const { return costs[id]; }

  /// A point not visited, each as likely; none when all are.
  std::optional<ConfigId> pickOther(Random &random) const {
    if (isFull())
      return std::nullopt;
    for (int tries = 0; tries < 64; ++tries)
      if (ConfigId id = ConfigId(random.below(known.size())); !known[id])
        return id;
    // Few are left: count to one of them.
    uint64_t skip = random.below(known.size() - numKnown);
    for (ConfigId id = 0;; ++id)
      if (!known[id] && skip-- == 0)
        return id;
  }

private:
  static constexpr double unmeasured = std::numeric_limits<double>::infinity();
  std::vector<bool> known;
  std::vector<double> costs;
  uint64_t numKnown = 0;
};

// Gaussian-process regression over the points of a ConfigSpace (Rasmussen and
// Williams 2006, algorithm 2.1), with the posterior of a pool of candidates
// kept up to date: an observation costs O(observations) for each candidate.

/// Points as vectors, and how alike two of them are: a Matern 3/2 kernel over
/// distances scaled by parameter. Ordered values are spread over [0, 1], by
/// logarithm where they are positive and span more than a factor of 4;
/// different choices lie 1 apart.
class ConfigKernel {
public:
  explicit ConfigKernel(const ConfigSpace &space);

  /// Parameters with more than one value; the others carry nothing.
  size_t numFeatures() const { return varying.size(); }
  /// Writes numFeatures() numbers.
  void features(ConfigId id, float *out) const;
  /// In [0, 1]; 1 for equal points.
  float operator()(const float *a, const float *b) const;

  /// Inverse length scales, by feature.
  std::vector<float> scales;

private:
  const ConfigSpace &space;
  std::vector<uint32_t> varying;
  std::vector<std::vector<float>> featureOf; ///< [feature][value]
  std::vector<float> isChoice;               ///< 1 or 0, by feature
};

class GaussianProcess {
public:
  /// `noise`: variance of the observations' noise over that of the signal.
  GaussianProcess(const ConfigSpace &space, float noise);

  /// Sets the scales that make the targets (mean 0, variance 1) most likely
  /// under a log-normal prior around 1: `numTrials` random steps from the
  /// present ones, deterministic by `seed`.
  void fitScales(std::span<const ConfigId> points,
                 std::span<const float> targets, uint32_t numTrials,
                 uint64_t seed);
  /// Forgets all observations and candidates, then observes these.
  void condition(std::span<const ConfigId> points,
                 std::span<const float> targets);
  /// O(observations^2).
  void addCandidate(ConfigId id);
  /// Takes candidate `position` out of the pool (the last one moves to its
  /// place) and makes it an observation.
  void observe(size_t position, float target);

  size_t numObservations() const { return observed; }
  size_t numCandidates() const { return candidates.size(); }
  ConfigId candidate(size_t position) const { return candidates[position]; }
  float mean(size_t position) const { return means[position]; }
  /// Standard deviation of the signal there.
  float deviation(size_t position) const;

private:
  double negativeLogLikelihood(std::span<const float> features,
                               std::span<const float> targets);

  ConfigKernel kernel;
  float noise;
  size_t observed = 0;
  std::vector<float> observedFeatures; ///< observed x features
  std::vector<float> factor;           ///< Cholesky rows, packed
  std::vector<float> weights;          ///< factor^-1 * targets
  std::vector<ConfigId> candidates;
  std::vector<float> candidateFeatures;
  /// factor^-1 * k(observed, candidate), by candidate.
  std::vector<std::vector<float>> rows;
  std::vector<float> means, explained;
};

/// Set on data/tuning (A100, A4000, MI250X) by `bench-search`.
struct SurrogateOptions {
  uint32_t numInitial = 4;        ///< random points before the first model
  float optimism = 1.5;           ///< deviations below the mean
  float noise = 1e-4;             ///< see GaussianProcess
  uint32_t numRandom = 400;       ///< random candidates
  uint32_t numBest = 10;          ///< whose neighbours are candidates
  uint32_t maxObservations = 320; ///< for one model; the best, and some others
  float refitGrowth = 1.2; ///< new scales when there are so many times more
};

class SurrogateSearch : public SearchStrategy {
public:
  SurrogateSearch(const ConfigSpace &space, uint64_t seed,
                  SurrogateOptions options = {});
  std::optional<ConfigId> propose() override;
  void report(ConfigId id, std::optional<double> cost) override;

private:
  void rebuild();
  void addNeighbours(ConfigId id);
  void addCandidate(ConfigId id);
  float targetOf(double logCost) const;

  const ConfigSpace &space;
  SurrogateOptions options;
  Random random;
  GaussianProcess model;
  Visited visited;
  std::vector<bool> isCandidate;
  std::vector<ConfigId> points; ///< reported
  std::vector<double> logCosts; ///< NaN for a failure
  double best = 0, worst = 0;   ///< of the logarithms
  uint32_t numGood = 0;
  double centre = 0, spread = 1; ///< of the model's targets
  size_t rebuildAt = 0, fitAt = 0;
  std::vector<ConfigId> scratch;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_STRATEGY_SURROGATE_H
