// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_EARLYNODES_H
#define MGPU_CAPTURE_GRAPH_EARLYNODES_H

// Which nodes may begin before the node they follow has ended, because they
// wait for it themselves (programmatic dependent launch).

#include "device/api/GraphDriver.h"
#include "planner/dag/Dag.h"

namespace mgpu::capture {

struct EarlyNodes {
  /// By KernelId: its launch waits (Driver::awaits).
  std::vector<bool> kernels;
  /// A copy within a device of at most so many bytes is a launch that waits
  /// (Driver::earlyCopyBytes); 0: none is.
  uint64_t copyBytes = 0;

  /// Asks the driver. Copies wait only where some kernel does: else nobody
  /// asked for early launches.
  static EarlyNodes of(std::span<const device::KernelHandle> kernels,
                       const device::Driver &driver);
  /// Whether the node is a launch of a kernel, or such a copy.
  bool isLaunch(const planner::Dag &dag, const planner::DagNode &node) const;
  /// Whether it is a launch that waits.
  bool waits(const planner::Dag &dag, const planner::DagNode &node) const;
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_EARLYNODES_H
