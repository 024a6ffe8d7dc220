// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_BOUND_MAKESPANBOUND_H
#define MGPU_PLANNER_SCHEDULE_BOUND_MAKESPANBOUND_H

#include "planner/certificate/Certificate.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner {

/// Beyond this many nodes heads are longest paths alone: the sets of ancestors
/// take nodes^2 / 8 bytes, and looking them through nodes^2 steps.
inline constexpr uint32_t maxStreamHeadNodes = 30000;

/// Heads by stream (backward: tails). No schedule starts node j before
///   head(j) = max(head(p) + d(p) of each predecessor p,
///                 t + the work of {i in A(j) on r, head(i) >= t}
///                   of each resource r and time t)
/// where A(j) are all ancestors of j: all of that set starts at or after t,
/// takes its work of the resource, and ends before j. On a unit stream the work
/// is the duration. Each claim has the reason that gave it. O(nodes^2) bit
/// tests and nodes^2 / 8 bytes at most; a problem of more than `mostNodes` gets
/// longest paths alone, in O(edges).
std::vector<Claim> streamHeads(const Problem &problem, Direction direction,
                               uint32_t mostNodes = maxStreamHeadNodes);

/// No schedule of the problem ends before certificate.boundUs: the largest of
/// head + duration + tail over nodes, and of a + work(S) + b over the sets S on
/// one resource whose heads are at least a and whose tails are at least b (of a
/// unit stream: Jackson's preemptive schedule; Carlier 1982), and likewise over
/// sets of buffers in the memory of one device, where that has a limit and
/// `byMemory` allows it; heads and tails are streamHeads(). check() verifies
/// it.
Certificate makespanBound(const Problem &problem, bool byMemory = true);

/// The kind of argument that proves the bound.
BoundArgument argumentOf(const Certificate &certificate);

/// The argument in words: "5242 nodes on kernels, none before 357139.1 us, are
/// 690375.0 us of work, and 148906.0 us follow each".
std::string explainBound(const Certificate &certificate,
                         const Problem &problem);

/// The bound of a program's plan, with its proof.
struct PlanBound {
  double us = 0;                             ///< of a replay
  BoundArgument by = BoundArgument::Unknown; ///< of a replay's longest phase
  std::vector<Certificate> certificates;     ///< by phase; checked
  std::vector<std::string> words; ///< by phase of a replay: explainBound()
};
Result<PlanBound> boundOf(std::span<const PhaseProblem> phases);

/// Writes a bound into a plan. Sums in another order may round to just above a
/// makespan that meets the bound, which then is that makespan.
void setBound(Plan &plan, double us, BoundArgument by);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_BOUND_MAKESPANBOUND_H
