// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_LATENCYESTIMATOR_H
#define MGPU_PLANNER_COST_LATENCYESTIMATOR_H

// What schedulers ask for durations. The tuner implements it from
// measurements; RooflineEstimator below is the model used without any.

#include "planner/dag/Dag.h"
#include "planner/dag/Origin.h"

namespace mgpu::planner {

class LatencyEstimator {
public:
  virtual ~LatencyEstimator();
  /// Predicted time of the node alone on its devices, microseconds, > 0.
  virtual double durationUs(const Dag &dag, NodeId node) const = 0;
  /// What that rests on: the file's where the node has a duration of its own,
  /// else by default assumed.
  virtual Origin origin(const Dag &dag, NodeId node) const;
  /// Where the figures come from, for the plan's `model` line.
  virtual std::string name() const = 0;
};

/// Assumed rates of one device; every default is labelled in the .cpp with its
/// source or "assumed".
struct RooflineRates {
  double flopsPerUs, bytesPerUs, linkBytesPerUs, launchUs, linkLatencyUs;
};
RooflineRates hostRates();

/// max(flops / rate, bytes / bandwidth) + launch; collectives by the ring
/// formula (nccl-tests bus factors); frozen durations pass through.
class RooflineEstimator final : public LatencyEstimator {
public:
  explicit RooflineEstimator(RooflineRates rates, std::string label);
  double durationUs(const Dag &dag, NodeId node) const override;
  std::string name() const override { return label; }

private:
  RooflineRates rates;
  std::string label;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_LATENCYESTIMATOR_H
