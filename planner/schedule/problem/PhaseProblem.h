// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H

#include "planner/dag/Dag.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// One phase of a program as a problem. Phases follow each other whole, so
/// least makespans add up, and so do bounds.
struct PhaseProblem {
  Phase phase = Phase::Replay;
  Problem problem;
  std::vector<NodeId> nodes; ///< nodes of the DAG, by node of the problem
};

/// The planning model of programs (planner/schedule/list/Schedulers.h), a
/// problem for each phase that has nodes, in their order. Each class of work of
/// each device, and of the host, is a unit stream. Device buffers that share
/// memory, which those of a replay alone do, are buffers; others are resident.
/// `durations` are by node of the DAG, in microseconds; `memoryBytes` is the
/// limit of each device.
Result<std::vector<PhaseProblem>>
phaseProblems(const Dag &dag, std::span<const double> durations,
              uint64_t memoryBytes = UINT64_MAX);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H
