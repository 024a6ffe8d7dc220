// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_CONTENTION_H
#define MGPU_PLANNER_COST_CONTENTION_H

// How much longer work takes while other work of the same device runs.

#include "planner/cost/TargetMachine.h"

namespace mgpu::planner {

/// factor[mine][other]: a node of class `mine` takes that many times as long
/// while one of class `other` runs on one of its devices; 1: not at all.
/// Several others multiply.
struct Contention {
  double factor[3][3] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};

  double of(WorkClass mine, WorkClass other) const {
    return factor[size_t(mine)][size_t(other)];
  }
  bool operator==(const Contention &) const = default;
};

/// The shares of a machine: kernels and collectives the SMs, all three the
/// memory, copies and collectives a PCIe link where devices are joined by one.
/// Nothing on the host, whose planning model has none. `list`, where not null,
/// gets each figure with its origin.
Contention contentionOf(const device::Topology &topology,
                        std::vector<Coefficient> *list = nullptr);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_CONTENTION_H
