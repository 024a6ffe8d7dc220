// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_SURROGATE_H
#define MGPU_TUNER_STRATEGY_SURROGATE_H

// Bayesian search: a Gaussian process of the logarithm of the cost proposes
// the candidate whose optimistic estimate is lowest (Srinivas et al. 2010,
// GP-LCB), among the neighbours of the best points and a random sample.

#include "tuner/strategy/GaussianProcess.h"
#include "tuner/strategy/SearchStrategy.h"
#include "tuner/strategy/Visited.h"

namespace mgpu::tuner {

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
