// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_LATENCYESTIMATOR_H
#define MGPU_PLANNER_COST_LATENCYESTIMATOR_H

// Schedulers ask it for durations. A Machine (TargetMachine.h) answers.

#include "planner/dag/Dag.h"
#include "planner/dag/Origin.h"

namespace mgpu::planner {

class LatencyEstimator {
public:
  virtual ~LatencyEstimator();
  /// Predicted time of the node alone on its devices, microseconds, > 0.
  virtual double durationUs(const Dag &dag, NodeId node) const = 0;
  /// The origin of that duration: the file's where the node has a duration of
  /// its own, else by default assumed.
  virtual Origin origin(const Dag &dag, NodeId node) const;
  /// The share by which it may be too long or too short; 0: that is not known.
  virtual double error(const Dag &, NodeId) const { return 0; }
  /// Where the figures come from, for the plan's `model` line.
  virtual std::string name() const = 0;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_LATENCYESTIMATOR_H
