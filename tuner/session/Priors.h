// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_PRIORS_H
#define MGPU_TUNER_SESSION_PRIORS_H

// Predicts configurations before they are measured: where a search begins, and
// nothing more.

#include "tuner/record/MeasuredTimes.h"

#include <array>

namespace mgpu::tuner {

/// Times of the nodes of a program, and of what transforms make of it, from
/// times of some of its nodes. Work that was timed takes what it took. Other
/// work takes what `model` says, times a ratio: what timed work of the same
/// kernel, else of the same kind, took over what the model says of it. So what
/// a transform made new is not judged by another measure than the rest.
class PriorTimes final : public planner::LatencyEstimator {
public:
  PriorTimes(const planner::Dag &program, const NodeTimes &timed,
             const planner::LatencyEstimator &model);
  double durationUs(const planner::Dag &dag,
                    planner::NodeId node) const override;
  std::string name() const override { return "priors; " + model.name(); }

private:
  struct Ratio {
    double measuredUs = 0, modelUs = 0;
    bool isKnown() const { return measuredUs > 0 && modelUs > 0; }
    double operator()() const { return measuredUs / modelUs; }
  };

  const planner::LatencyEstimator &model;
  std::map<std::string, double> known; ///< microseconds by workText()
  std::vector<Ratio> kernels;          ///< by KernelId
  std::array<Ratio, 3> kinds;          ///< by WorkClass
};

/// Microseconds of a replay on the host under `times`
/// (planner::hostReplayUs()); `machine` decides the plan. `dag` is as the
/// configuration's transforms leave the program.
Result<double> predictedUs(const planner::Dag &dag, const ProgramConfig &config,
                           const planner::Machine &machine,
                           const planner::LatencyEstimator &times);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_PRIORS_H
