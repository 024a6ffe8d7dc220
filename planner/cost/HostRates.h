// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_HOSTRATES_H
#define MGPU_PLANNER_COST_HOSTRATES_H

// Times of kernels and copies on a core of the host, by those that `calibrate`
// measured there.

#include "device/api/Topology.h"
#include "planner/cost/HostWork.h"

namespace mgpu::planner {

/// A time, and the share of it by which it may be longer or shorter.
struct HostTime {
  double us = 0, error = 0;
};

class HostRates {
public:
  /// Fits what each thing counted takes, none below 0, so that the sum of
  /// squares of the relative errors of the rows is least; what memory takes of
  /// large buffers by the rows that only stream them.
  explicit HostRates(const device::Topology::Calibration &measured);

  /// Compute c and memory m overlap in part: sqrt(c^2 + m^2). `footprint` is
  /// the program's (footprintOf()).
  HostTime kernel(const Dag &dag, const DagNode &node, double footprint) const;
  HostTime copy(double bytes, double footprint) const;
  /// The mean relative error of what was measured, by these rates.
  double fitError() const { return error; }

private:
  using Rows = std::vector<device::Topology::Calibration::HostWork>;
  using Curve = std::map<double, double>; ///< ns a byte, by footprint
  void fit(const Rows &rows);
  void fitMemory(const Rows &rows);
  double computeUs(const HostCounts &counts) const;
  double productUs(const Product &product) const;

  HostCounts ns; ///< of each thing counted
  double meanFunctionNs = 1;
  Curve stream, copied;
  double copyUs = 0; ///< of the smallest copy
  double error = 0;
  std::vector<device::Topology::Calibration::Matmul> products;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_HOSTRATES_H
