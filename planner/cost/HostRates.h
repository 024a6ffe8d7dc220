// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_HOSTRATES_H
#define MGPU_PLANNER_COST_HOSTRATES_H

// Times of kernels and copies on a core of the host, by those that `calibrate`
// measured there.

#include "device/api/Topology.h"
#include "planner/dag/Dag.h"

#include <map>
#include <string>

namespace mgpu::planner {

// Counts what a node asks of a core of the host. `calibrate` counts its kernels
// by it and the rates below a program's, so that both mean the same.

/// How often a launch does what:
/// - "launch", "block": begins.
/// - "operation", and "exp", "divide.int", ...: of elements, by function;
///   "scalar": of a row of threads as one.
/// - "access": loads and stores of neighbours by neighbours; "common": of one
///   place by a row; "turned": apart, but one after the other in a loop;
///   "strided.0" to "strided.2" and "gather.0" to "gather.2":
///   apart, and nobody knows where, in buffers of 64 KiB, 4 MiB and 128 MiB;
///   what lies between counts in shares.
/// - "reduction", "exchange", "shared": within blocks and subgroups, and of
///   memory that is not a buffer.
/// Elements of a row of threads count as vectors of eight, and those that do
/// not fill one as a vector each.
using HostCounts = std::map<std::string, double>;

/// Rows of more bytes are about memory; a second-level cache has these.
inline constexpr double hostNearBytes = 0x1p19;

/// Counts a kernel's launch by its facts; without them, by its counts of
/// operations and bytes. Matrix products have no counts but "launch".
HostCounts hostCounts(const Dag &dag, const DagNode &node);

/// The product of matrices that a launch is; none: it is another kernel.
std::optional<Product> hostProduct(const Dag &dag, const DagNode &node);

/// Bytes of the buffers of a program, which its replays go through. A program
/// of more than a thousand buffers is judged by as many of them.
double footprintOf(const Dag &dag);

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
