// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_VERIFYMEMORY_H
#define MGPU_PLANNER_PLAN_VERIFYMEMORY_H

// The part of verify() that judges memory: who may touch which bytes when.

#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// Which steps of a plan end before which begin, by vector clocks.
struct StepOrder {
  size_t numStreams = 0;
  std::vector<uint32_t> clock; ///< [step][stream]: steps of the stream done
  std::vector<uint32_t> home;  ///< a stream of the step

  bool isBefore(uint32_t earlier, uint32_t later) const {
    uint32_t stream = home[earlier];
    return earlier < later && clock[later * numStreams + stream] >=
                                  clock[earlier * numStreams + stream];
  }
};

/// `base`: the arena offset of each buffer in bytes, 0 on the host. The steps
/// are those of the DAG's nodes, each once.
Result<void> verifyMemory(const Plan &plan, const Dag &dag,
                          const StepOrder &order,
                          const std::vector<int64_t> &base);

/// An error that begins with "plan: ".
tl::unexpected<Error> badPlan(std::string message);
/// "node 3 "add" (FILE:LINE:COLUMN)".
std::string nodeText(const Dag &dag, NodeId id);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_VERIFYMEMORY_H
