// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H
#define MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H

// The search that makePlan() is made of.

#include "planner/schedule/MakePlan.h"

namespace mgpu::planner {

/// Plan::model of what is planned by frozen durations alone.
inline constexpr const char *frozenModelName = "frozen model F";

/// Whether verify() has proven the plan of a DAG that is spmd. A draft's arena
/// just fits, or there is none where it surely does; others are as small as can
/// be. A draft is not verified yet, and may be of a quotient: its caller calls
/// prove() for the one it takes. `known` is the DAG's quotient by these times,
/// where a draft had one.
enum class Proof : uint8_t { Verified, Draft };

/// The plan of a DAG as it is, as far as the request's policies allow; its
/// transforms are not looked at. A DAG that is spmd goes to the overlap search,
/// where a node of the budget is a move. Others: list schedules of one to
/// PlanRequest::streamsPerDevice streams, searchPlans() and, where work on the
/// machine slows down what runs beside it, list schedules of disturbed
/// priorities and what joinForks() makes of the best. A node of the budget is a
/// plan. A request that isFixed() gets the scheduler's own plan. Invalid where
/// nothing is found that fits the memory: the error says so plainly or, with a
/// proof by a minimum cut, names the step, what is live there and how much is
/// missing.
Result<TargetPlan> searchPlan(const Dag &dag, const Machine &machine,
                              const PlanRequest &request, exact::Budget &budget,
                              Proof proof,
                              std::shared_ptr<const Quotient> known = {});

/// Makes a plan of a draft of a DAG that is not spmd: one of a quotient is
/// lifted, and so is its bound. Internal where verify() refuses what comes out.
Result<void> prove(TargetPlan &draft, const Dag &dag,
                   const PlanRequest &request);

/// The makespan with contention of the scheduler's own plan.
Result<double> firstUs(const Dag &dag, const Machine &machine,
                       const PlanRequest &request);

/// Takes forks out of a verified plan, as long as that makes its makespan with
/// contention shorter: all of two classes of work, then single ones, what loses
/// most first. Steps, streams and buffers stay where they are; a step gets one
/// wait more for what it ran beside. The number of waits added.
uint32_t joinForks(Plan &plan, const Dag &dag, const Contention &contention);

/// Steps that run while another of their device's classes of work does, with
/// contention; by node.
std::vector<bool> runsBeside(const Plan &plan, const Dag &dag,
                             const Contention &contention);

/// The changes that `freedom` (one of them) made between two drafts of one DAG:
/// the number of nodes, and lines for people. `without` is null where nothing
/// fits without it.
struct PolicyChange {
  uint32_t nodes = 0;
  std::vector<std::string> lines;
};
PolicyChange comparePolicy(TransformKind policyFlag, const TargetPlan *without,
                           const TargetPlan &with, const Dag &dag,
                           const Contention &contention);

/// For durations of nodes that TargetPlan::isScaled tells of.
inline constexpr const char *scaledWords =
    "the file's duration, scaled by the estimates of what it was and is "
    "(assumed)";

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TARGETSEARCH_H
