// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_GAUSSIANPROCESS_H
#define MGPU_TUNER_STRATEGY_GAUSSIANPROCESS_H

// Gaussian-process regression over the points of a ConfigSpace (Rasmussen and
// Williams 2006, algorithm 2.1), with the posterior of a pool of candidates
// kept up to date: an observation costs O(observations) for each candidate.

#include "tuner/space/ConfigSpace.h"

namespace mgpu::tuner {

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

} // namespace mgpu::tuner

#endif // MGPU_TUNER_STRATEGY_GAUSSIANPROCESS_H
