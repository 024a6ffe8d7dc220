// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_UNWRITTENREADS_H
#define MGPU_PLANNER_RECORD_UNWRITTENREADS_H

// Reads of device memory that nothing has written: a kernel, copy or collective
// that surely reads bytes of a buffer before anything in the program wrote near
// them.

#include "planner/dag/Dag.h"

#include <functional>

namespace mgpu::planner {

struct UnwrittenRead {
  NodeId node;
  size_t use;
};

/// The first such read of each buffer that a program allocates on a device, in
/// program order. `isExact(node, use)` tells whether the use is sure to touch
/// all of its box. A node that writes the buffer it reads may write first; what
/// collectives write counts from the start, as they are recorded late.
std::vector<UnwrittenRead>
findUnwrittenReads(const Dag &dag,
                   const std::function<bool(NodeId, size_t)> &isExact);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_UNWRITTENREADS_H
