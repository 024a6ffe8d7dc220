// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H
#define MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H

#include "planner/dag/PlanPart.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// One phase of a program as a problem. Phases follow each other whole, so
/// least makespans of a replay add up, and so do bounds.
struct PhaseProblem {
  Phase phase = Phase::Replay;
  double times = 1; ///< timesInReplay() of the phase
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

/// Whether the times of `phases[k]` count from 0, and not from the end of the
/// phase before.
inline bool beginsPart(std::span<const PhaseProblem> phases, size_t k) {
  return k == 0 || partOf(phases[k - 1].phase) != partOf(phases[k].phase);
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PROBLEM_PHASEPROBLEM_H
