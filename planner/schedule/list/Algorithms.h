// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_LIST_ALGORITHMS_H
#define MGPU_PLANNER_SCHEDULE_LIST_ALGORITHMS_H

// How each collective of a plan is to be done: the algorithm and protocol that
// are the fastest by NCCL's own estimate on the machine.

#include "planner/cost/TargetMachine.h"
#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// Microseconds are NCCL's estimates; the plan's duration may rest on a
/// measurement or the file instead, which `durationFrom` says.
struct AlgorithmChoice {
  NodeId node;
  NcclTime best;
  std::optional<NcclTime> next; ///< the runner-up
  std::string durationFrom;
};

/// Chooses for every collective that has more than one algorithm; by node.
std::vector<AlgorithmChoice> chooseAlgorithms(const Dag &dag,
                                              const Machine &machine);

/// Writes the choices into the plan's steps.
void recordAlgorithms(Plan &plan, const std::vector<AlgorithmChoice> &choices);

/// One line for each group of alike collectives (kind, bytes, choice), the most
/// frequent first: the choice, the runner-up, by how much it is slower, and
/// what the duration in the plan is from.
std::string explainAlgorithms(const std::vector<AlgorithmChoice> &choices,
                              const Dag &dag, const Machine &machine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_LIST_ALGORITHMS_H
