// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_MAKEPLAN_H
#define MGPU_PLANNER_SCHEDULE_MAKEPLAN_H

// From a DAG and a machine to a plan that is proven: the one road of programs,
// graphs by calls, DAG files and traces, whatever the machine is made of.

#include "planner/certificate/Certificate.h"
#include "planner/cost/Contention.h"
#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/problem/Problem.h"
#include "planner/schedule/transform/Transform.h"

#include <memory>
#include <optional>

namespace mgpu::planner {

struct Quotient; // alike/Quotient.h

/// `seed` is of the search too, and of all streams `streamsPerDevice` is the
/// most. Policies are the freedoms of the schedule from the start; those of
/// `transforms` are among them.
struct PlanRequest : ScheduleOptions {
  /// "list" and "serial" draw a factor of 1/2 to 2 by it for the duration of
  /// each node, which changes their order, and search no further; 0 draws none.
  uint64_t drawn = 0;
  uint64_t memoryBytes = UINT64_MAX; ///< a device's, with resident buffers
  double scaleComm = 1; ///< spmd DAGs: multiplies collectives' times
  /// Tried in order; each is kept if the plan after it is shorter. Schedule
  /// policies come last: each is kept if the plan without it is longer, or as
  /// long with more memory.
  std::vector<Transform> transforms;
  /// Transforms are made, whether the plan gets shorter or not.
  bool makesAll = false;
  std::vector<OpFactor> ops; ///< TransformContext::ops
  /// Devices that do alike are planned as one (alike/Quotient.h).
  bool byClass = true;

  /// Nothing but the scheduler makes the plan.
  bool isFixed() const { return scheduler != "list" || drawn != 0; }
};

/// The gain of a transform for the plan. Times are makespans in microseconds; 0
/// before where nothing fitted the memory, and after where nothing changed or
/// fitted. For a schedule policy, before is the plan without it, of the same
/// DAG.
struct TransformGain {
  Transform transform = TransformKind::Copies;
  uint32_t changes = 0;
  double beforeUs = 0, afterUs = 0;
  double contendedBeforeUs = 0, contendedAfterUs = 0;
  bool isKept = false;
  /// TransformContext::left; of chunks, what their numbers are.
  std::vector<std::string> left;
};

/// The problem that was searched for a plan of a DAG that is spmd, and a
/// checked proof of the plan's bound.
struct OverlapOutcome {
  Problem problem;
  Schedule schedule;
  Certificate certificate;
  uint64_t peakBytes = 0;  ///< by the model, resident bytes included
  double firstSeconds = 0; ///< until the first verified plan
};

struct TargetPlan {
  Plan plan; ///< verified; names the transforms kept
  /// The DAG it is a plan of, where a transform was kept.
  std::optional<Dag> dag;
  std::vector<TransformGain> gains; ///< by transform tried
  /// By node of `dag`: whether its duration is one of the file that a transform
  /// scaled. Empty where none is.
  std::vector<bool> isScaled;
  /// One for each collective, where algorithms were chosen.
  std::vector<AlgorithmChoice> algorithms;
  /// The plan's time, when work that shares a device slows other work down.
  double contendedUs = 0;
  /// The time of all nodes one after the other, where there is no contention.
  double serialUs = 0;
  std::optional<OverlapOutcome> overlap; ///< of a DAG that is spmd
  /// The DAG that a draft is of, with one device for several.
  std::shared_ptr<const Quotient> quotient;
  uint32_t classes = 0; ///< devices that stood for all; 0: all were planned
};

/// "" is the memory of the topology's devices, "none" no limit.
Result<uint64_t> memoryLimit(const device::Topology &topology,
                             const std::string &memory);

/// Absent if the DAG has more devices than the machine, whose times of nodes
/// count only where there are no transforms. Without a budget the search takes
/// some hundredths of a second for a small program, and for a large one no
/// longer than its bound: a number of moves that depends on the DAG alone. A
/// DAG that is spmd goes to the overlap search, others to ListSearch; both as
/// far as the schedule policies reach: without `order` there is nothing to
/// search. The plan of the least makespan with contention that fits the memory
/// is kept. Each transform that changes something takes an equal share of the
/// budget, and is kept if the plan gets shorter: with contention, or, for a DAG
/// that is spmd, by the model that its search is of. A program that does not
/// fit is Invalid, and the error says at which step, what is live there and how
/// much is missing.
Result<TargetPlan> makePlan(const Dag &dag, const Machine &machine,
                            const PlanRequest &request = {},
                            exact::Budget *budget = nullptr);

/// In words: makespans with contention, on what the durations rest (shares of
/// their sum that are measured, published, assumed), and every coefficient with
/// its origin.
std::string explainModel(const TargetPlan &plan, const Dag &dag,
                         const Machine &machine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_MAKEPLAN_H
