// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_NCCL_H
#define MGPU_PLANNER_COST_NCCL_H

// NCCL's own estimate of a collective: alpha-beta for each algorithm and
// protocol, on a topology.

#include "device/api/Topology.h"
#include "planner/dag/CollectiveAlgorithm.h"
#include "support/Types.h"

#include <vector>

namespace mgpu::planner {

struct NcclTime {
  double us = 0;
  CollectiveAlgorithm algorithm;
};

/// The time of each algorithm and protocol that can do it, the fastest first:
/// for `bytes` (the larger side) over `ranks` >= 2 devices, `ranks / nodes` on
/// each of `nodes` nodes. Never empty.
std::vector<NcclTime> ncclEstimates(const device::Topology &topology,
                                    CollectiveKind kind, double bytes,
                                    uint32_t ranks, uint32_t nodes);

/// Whether NCCL has more than one way to do it; all_to_all, permutations and
/// pairs are sends and receives.
bool hasAlgorithms(CollectiveKind kind);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_NCCL_H
