// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_NCCL_H
#define MGPU_PLANNER_COST_NCCL_H

// NCCL's own estimate of a collective: alpha-beta for each algorithm and
// protocol, on a topology.

#include "device/api/Topology.h"
#include "support/Types.h"

namespace mgpu::planner {

struct NcclChoice {
  double us = 0;
  const char *algorithm = "", *protocol = "";
};

/// The fastest algorithm and protocol for `bytes` (the larger side) over
/// `ranks` >= 2 devices, `ranks / nodes` on each of `nodes` nodes.
NcclChoice ncclEstimate(const device::Topology &topology, CollectiveKind kind,
                        double bytes, uint32_t ranks, uint32_t nodes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_NCCL_H
